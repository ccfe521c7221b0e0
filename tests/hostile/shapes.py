"""What no honest client sends, and how it is to be answered.

Thrown at the sans-I/O objects, whole and byte by byte, and at a real process, which has to survive all of it.
"""

import struct

from tests.hostile.attack import close_frame, frame, upgrade

SMALL_LIMITS = {"request_line_bytes": 100, "head_bytes": 300, "header_count": 8}
LONGEST = 1000  # bytes of a message
HOST = b"Host: localhost\r\n"
CHUNKED_POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"

# Heads, and the status that refuses them.
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
REFUSED = {
    "nothing but line ends": (b"\r\n\r\n\r\n", 400),
    "no version": (b"GET /\r\n" + HOST + b"\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", 505),
    "HTTP/11": (b"GET / HTTP/11\r\n" + HOST + b"\r\n", 400),
    "http in lower case": (b"GET / http/1.1\r\n" + HOST + b"\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a tab in the request line": (b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a space before the method": (b" GET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a space in the target": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target that is no ASCII": (b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target that is no path": (b"GET a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an asterisk for GET": (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "another scheme": (b"GET ftp://a/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an absolute target without authority": (b"GET http:///a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "CONNECT": (b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "no Host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "a bare line feed": (b"GET / HTTP/1.1\n" + HOST + b"\r\n", 400),
    "bare line feeds alone": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "a bare carriage return": (b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400),
    "a NUL": (b"GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 400),
    "a control character": (b"GET / HTTP/1.1\r\n" + HOST + b"X: \x1b[2J\r\n\r\n", 400),
    "a folded header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n", 400),
    "a folded header with a tab": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n\tb\r\n\r\n", 400),
    "a fold before all headers": (b"GET / HTTP/1.1\r\n X: a\r\n" + HOST + b"\r\n", 400),
    "a space before the colon": (b"GET / HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n", 400),
    "a header without a name": (b"GET / HTTP/1.1\r\n" + HOST + b": a\r\n\r\n", 400),
    "a header without a colon": (b"GET / HTTP/1.1\r\n" + HOST + b"X\r\n\r\n", 400),
    "a name that is no token": (b"GET / HTTP/1.1\r\n" + HOST + b"X(: a\r\n\r\n", 400),
    "length and chunks": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n" + _CHUNKED + b"\r\n", 400),
    "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
    "one length twice": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400),
    "a list of lengths": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5, 5\r\n\r\n", 400),
    "a signed length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +5\r\n\r\n", 400),
    "a negative length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n", 400),
    "a hexadecimal length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x5\r\n\r\n", 400),
    "an empty length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: \r\n\r\n", 400),
    "an endless length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n", 400),
    "another coding": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "two codings": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n", 501),
    "chunked twice": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", 501),
    "a coding in disguise": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: \x0bchunked\r\n\r\n", 400),
    "another expectation": (b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 200-ok\r\n\r\n", 417),
    "a long request line": (b"GET /" + b"a" * 200 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "an endless request line": (b"GET /" + b"a" * 200, 414),
    "a big head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 400 + b"\r\n\r\n", 431),
    "an endless head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 400, 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 8 + b"\r\n", 431),
    "a TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
}  # fmt: skip

# Behind the head of a chunked request; 400.
BAD_CHUNKS = {
    "no number": b"x\r\n",
    "empty": b"\r\n",
    "negative": b"-1\r\n",
    "signed": b"+5\r\nhello\r\n",
    "0x": b"0x5\r\nhello\r\n",
    "underscore": b"1_0\r\n",
    "too many digits": b"1" * 17 + b"\r\n",
    "a space in front": b" 5\r\nhello\r\n",
    "a space behind": b"5 \r\nhello\r\n",
    "a bare line feed": b"5\nhello\r\n0\r\n\r\n",
    "a carriage return in an extension": b"5;a\rb\r\nhello\r\n",
    "longer than it says": b"3\r\nhello\r\n0\r\n\r\n",
    "shorter than it says": b"7\r\nhello\r\n0\r\n\r\n" + b"x" * 10,
    "no line end behind": b"5\r\nhelloX",
    "a line feed behind": b"5\r\nhello\n0\r\n\r\n",
    "an endless extension": b"5;" + b"a" * 2000,
    "a trailer": b"0\r\nX: a\r\n\r\n",
    "an end of line feeds": b"0\r\n\n",
}

# Upgrades, and the status that refuses them.
KEY = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
HANDSHAKES = {
    "POST": (upgrade().replace(b"GET", b"POST"), 400),
    "HTTP/1.0": (upgrade().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    "no key": (upgrade().replace(KEY, b""), 400),
    "two keys": (upgrade().replace(KEY, KEY + KEY), 400),
    "an empty key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: \r\n"), 400),
    "a short key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: AAAA\r\n"), 400),
    "a long key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: " + b"A" * 64 + b"\r\n"), 400),
    "a key that is no base64": (upgrade().replace(KEY, KEY.replace(b"AAAA", b"A?A_")), 400),
    "a key that is no ASCII": (upgrade().replace(KEY, KEY.replace(b"AAAA", b"\xff\xff\xff\xff")), 400),
    "no version": (upgrade().replace(b"Sec-WebSocket-Version: 13\r\n", b""), 426),
    "version 8": (upgrade().replace(b"Version: 13", b"Version: 8"), 426),
    "two versions": (upgrade("/echo", b"Sec-WebSocket-Version: 8"), 426),
    "a list of versions": (upgrade().replace(b"Version: 13", b"Version: 13, 8"), 426),
    "a body": (upgrade("/echo", b"Content-Length: 1"), 400),
    "chunks": (upgrade("/echo", b"Transfer-Encoding: chunked"), 400),
    "an early byte": (upgrade() + b"x", 400),
    "an early frame": (upgrade() + frame(1, b"hello"), 400),
    "a subprotocol that is no ASCII": (upgrade("/echo", b"Sec-WebSocket-Protocol: \xff"), 400),
    "an empty subprotocol": (upgrade("/echo", b"Sec-WebSocket-Protocol: a,,b"), 400),
    "a subprotocol that is no token": (upgrade("/echo", b"Sec-WebSocket-Protocol: a b"), 400),
    "an extension that is no ASCII": (upgrade("/echo", b"Sec-WebSocket-Extensions: \xff"), 400),
}

# Behind an accepted upgrade, and the code that closes the socket.
NO_CODES = (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)
FAULTS = {
    **{f"opcode {opcode}": (frame(opcode), 1002) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    **{f"reserved bits {rsv}": (frame(1, b"x", rsv=rsv), 1002) for rsv in (1, 2, 4, 7)},
    "reserved bit of a ping": (frame(9, rsv=4), 1002),
    "no mask": (frame(1, b"x", mask=None), 1002),
    "a ping without a mask": (frame(9, b"x", mask=None), 1002),
    "a ping in fragments": (frame(9, b"x", fin=False), 1002),
    "a close in fragments": (frame(8, fin=False), 1002),
    "a long ping": (frame(9, b"x" * 126), 1002),
    "a long close": (frame(8, struct.pack("!H", 1000) + b"x" * 124), 1002),
    "a close of one byte": (frame(8, b"\x03"), 1002),
    **{f"close code {code}": (close_frame(code), 1002) for code in NO_CODES},
    "a close reason that is no UTF-8": (close_frame(1000, b"\xff"), 1007),
    "a continuation of nothing": (frame(0, b"x"), 1002),
    "a message within a message": (frame(1, b"a", fin=False) + frame(1, b"b"), 1002),
    "text within binary": (frame(2, b"a", fin=False) + frame(1, b"b"), 1002),
    "text that is no UTF-8": (frame(1, b"\xff"), 1007),
    "text that ends within a character": (frame(1, b"\xe2\x82"), 1007),
    "a surrogate": (frame(1, b"\xed\xa0\x80"), 1007),
    "an overlong NUL": (frame(1, b"\xc0\x80"), 1007),
    "above Unicode": (frame(1, b"\xf4\x90\x80\x80"), 1007),
    "no UTF-8 in the second fragment": (frame(1, b"a", fin=False) + frame(0, b"\xff", fin=False), 1007),
    "a character broken by fragments": (frame(1, b"\xc3", fin=False) + frame(0, b"x"), 1007),
    "no UTF-8 before the end of the frame": (frame(1, b"a\xff" + b"b" * 50)[:12], 1007),
    "two bytes of length for few": (b"\x81\xfe\x00\x05\0\0\0\0hello", 1002),
    "eight bytes of length for few": (b"\x81\xff" + struct.pack("!Q", 5) + b"\0\0\0\0hello", 1002),
    "eight bytes of length for some": (b"\x82\xff" + struct.pack("!Q", 65535) + b"\0\0\0\0", 1002),
    "a length above 63 bits": (b"\x82\xff" + b"\xff" * 8 + b"\0\0\0\0", 1002),
    "too big": (frame(2, b"x" * (LONGEST + 1)), 1009),
    "too big as text": (frame(1, "\u00e9".encode() * (LONGEST // 2 + 1)), 1009),
    "too big in fragments": (frame(2, b"x" * 600, fin=False) + frame(0, b"x" * 600, fin=False), 1009),
    "the announcement of too big": (b"\x82\xfe" + struct.pack("!H", LONGEST + 1), 1009),
    "the beginning of too big": (b"\x82\xff" + struct.pack("!Q", 2**62) + b"\0\0\0\0" + b"x" * 2000, 1009),
}  # fmt: skip
