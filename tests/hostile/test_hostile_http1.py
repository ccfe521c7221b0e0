"""HTTP/1.1 as lists of bytes: what is read, what is refused, what is written."""

import contextlib
import random
from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nerve.asgi.hardened.http1 import BadRequest, Http1
from nerve.asgi.hardened.limits import Limits
from nerve.asgi.hardened.response import BadResponse, refusal
from tests.hostile.shapes import BAD_CHUNKS, CHUNKED_POST, HOST, REFUSED, SMALL_LIMITS

SMALL = Limits(**SMALL_LIMITS)


def read(*pieces: bytes, limits: Limits = SMALL) -> tuple[str, bytes, bytes]:
    """Method, target and body of one request that comes in these pieces."""
    http, head, body = Http1(limits), None, b""
    for piece in pieces:
        http.feed(piece)
        head = head or http.next_head()
        if head is not None:
            body += http.next_body()
    assert head is not None
    assert http.body_complete
    return head.method, head.target, body


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"GET /a HTTP/1.1\r\n" + HOST + b"\r\n", b""),
        (b"\r\nGET /a HTTP/1.1\r\n" + HOST + b"\r\n", b""),
        (b"GET /a HTTP/1.0\r\n\r\n", b""),
        (b"GET /a HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n", b""),
        (b"GET /a HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (b"GET /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b""),
        (
            b"GET /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            b"hello",
        ),
        (b"GET /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n000\r\n\r\n", b"hello"),
        (
            b"GET /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n\r\n0\r\n\r\n0\r\n\r\n",
            b"\r\n0\r\n",
        ),
    ],
)
def test_a_request_is_the_same_however_it_is_cut(raw: bytes, body: bytes) -> None:
    assert read(raw) == ("GET", b"/a", body)
    assert read(*(raw[i : i + 1] for i in range(len(raw)))) == ("GET", b"/a", body)
    for seed in range(20):
        cuts = [0, *sorted(random.Random(seed).choices(range(len(raw)), k=3)), len(raw)]
        assert read(*(raw[a:b] for a, b in pairwise(cuts))) == ("GET", b"/a", body)


@pytest.mark.parametrize(("raw", "status"), REFUSED.values(), ids=REFUSED)
def test_heads_that_are_refused(raw: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        read(raw)
    assert refused.value.status == status
    with pytest.raises(BadRequest):  # also when it drips in, and no later
        read(*(raw[i : i + 1] for i in range(len(raw))))


@pytest.mark.parametrize("raw", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
@pytest.mark.parametrize("dripping", [False, True])
def test_chunks_that_are_refused(raw: bytes, dripping: bool) -> None:
    pieces = [raw[i : i + 1] for i in range(len(raw))] if dripping else [raw]
    with pytest.raises(BadRequest) as refused:
        read(CHUNKED_POST, *pieces)
    assert refused.value.status == 400


def test_requests_follow_each_other_in_one_piece() -> None:
    http = Http1(SMALL)
    one = b"POST /1 HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab"
    two = b"POST /2 HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\ncd\r\n0\r\n\r\n"
    http.feed(one + two + one)
    seen = []
    while (head := http.next_head()) is not None:
        body = http.next_body()
        answer = http.response.start(200, [(b"content-length", b"0")]) + http.response.end()
        seen.append((head.target, body, http.reusable))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert seen == [(b"/1", b"ab", True), (b"/2", b"cd", True), (b"/1", b"ab", True)]


def test_a_client_that_waits_is_invited_once_and_only_for_its_body() -> None:
    http = Http1(SMALL)
    http.feed(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert http.next_head() is not None
    assert http.invitation() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert http.invitation() == b""
    http.feed(b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\n\r\n")
    assert http.next_body() == b"PO"  # the body has its length, whatever it looks like


def respond(request: bytes, status: int, headers: list[tuple[bytes, bytes]], *parts: bytes) -> tuple[bytes, bool]:
    http = Http1(SMALL)
    http.feed(request)
    assert http.next_head() is not None
    response = http.response
    written = response.start(status, headers) + b"".join(map(response.part, parts)) + response.end()
    return written, http.reusable


GET, HEAD = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n"
OLD = b"GET / HTTP/1.0\r\n\r\n"
CLOSING = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status", "headers", "parts", "written", "reusable"),
    [
        (GET, 200, [(b"content-length", b"2")], [b"ok"], b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", True),
        (HEAD, 200, [(b"content-length", b"2")], [b"ok"], b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", True),
        (GET, 204, [], [b"x"], b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (GET, 304, [], [b"x"], b"HTTP/1.1 304 Not Modified\r\n\r\n", True),
        (
            GET, 404, [], [b"a", b"", b"bc"],
            b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", True,
        ),
        (OLD, 200, [], [b"a", b"b"], b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab", False),
        (
            CLOSING, 200, [(b"content-length", b"1")], [b"a"],
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\na", False,
        ),
        (GET, 299, [(b"content-length", b"0")], [], b"HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n", True),
    ],
)  # fmt: skip
def test_responses(
    request_: bytes, status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes], written: bytes, reusable: bool
) -> None:
    assert respond(request_, status, headers, *parts) == (written, reusable)


@pytest.mark.parametrize(
    ("status", "headers", "parts"),
    [
        (200, [(b"content-length", b"1")], [b"ab"]),
        (200, [(b"content-length", b"3")], [b"ab"]),
        (200, [(b"x", b"a\r\nY: b")], []),
        (200, [(b"x y", b"a")], []),
        (99, [], []),
    ],
)
def test_responses_that_are_no_responses_are_our_own_mistake(
    status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes]
) -> None:
    with pytest.raises(BadResponse):
        respond(GET, status, headers, *parts)


def test_a_refusal_is_whole_in_itself() -> None:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(refusal(431, 'too "big"', [(b"date", b"now")]))
    client.receive_data(b"")
    response, data, end = client.next_event(), client.next_event(), client.next_event()
    assert isinstance(response, h11.Response)
    assert (response.status_code, response.reason) == (431, b"Request Header Fields Too Large")
    assert isinstance(data, h11.Data)
    assert data.data == b'{"detail":"too \'big\'"}'
    assert isinstance(end, h11.EndOfMessage)


names = st.text("abcXYZ-_!", min_size=1, max_size=8).map(str.encode)
values = st.binary(max_size=12).map(lambda raw: bytes(byte for byte in raw if byte >= 0x21 and byte != 0x7F))
bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=4)


@settings(deadline=None, max_examples=150)
@given(headers=st.lists(st.tuples(names, values), max_size=4), parts=bodies, chunked=st.booleans(), data=st.data())
def test_what_h11_writes_is_read_as_it_was_meant(
    headers: list[tuple[bytes, bytes]], parts: list[bytes], chunked: bool, data: st.DataObject
) -> None:
    client = h11.Connection(h11.CLIENT)
    framing = (b"Transfer-Encoding", b"chunked") if chunked else (b"Content-Length", b"%d" % sum(map(len, parts)))
    kept = [(name, value) for name, value in headers if name.lower() not in (b"host",)]
    raw = client.send(h11.Request(method="POST", target="/a", headers=[(b"Host", b"a"), framing, *kept])) or b""
    raw += b"".join(client.send(h11.Data(data=part)) or b"" for part in parts)
    raw += client.send(h11.EndOfMessage()) or b""
    cut = data.draw(st.integers(0, len(raw)))
    assert read(raw[:cut], raw[cut:], limits=Limits()) == ("POST", b"/a", b"".join(parts))


LINES = [
    b"Content-Length: 3\r\n",
    b"Content-Length: 03\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, x\r\n",
    b"Host : a\r\n",
    b"X: a\x00b\r\n",
    b" x\r\n",
    b"X: \xff\r\n",
    b"Connection: close\r\n",
    b"X:\r\n",
    b"X: \t a : b \t\r\n",
    b"X: a\r\r\n",
    b"\n",
]
STARTS = [b"GET / HTTP/1.1\r\nHost: a\r\n", b"\r\nPOST /a HTTP/1.1\r\nHost: a\r\n", b"PUT /b HTTP/1.0\r\n"]
BODIES = [b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"2;x=y\r\nab\r\n", b"\r\n", b"\n", b"0\r\nX: a\r\n\r\n"]


@settings(deadline=None, max_examples=500)
@given(
    start=st.sampled_from(STARTS),
    lines=st.lists(st.sampled_from(LINES), max_size=3),
    behind=st.lists(st.sampled_from(BODIES), max_size=4),
)
def test_what_is_accepted_h11_reads_in_the_same_way(start: bytes, lines: list[bytes], behind: list[bytes]) -> None:
    """Strictness only ever refuses more; it never sees another request than others would."""
    raw = start + b"".join(lines) + b"\r\n" + b"".join(behind)
    http = Http1(Limits())
    http.feed(raw)
    try:
        head = http.next_head()
        body = http.next_body() if head is not None else b""
    except BadRequest:
        return
    if head is None or not http.body_complete:
        return
    server = h11.Connection(h11.SERVER)
    server.receive_data(raw.removeprefix(b"\r\n"))
    request, theirs = server.next_event(), b""
    assert isinstance(request, h11.Request)
    while isinstance(event := server.next_event(), h11.Data):
        theirs += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert (head.method.encode(), head.target, head.headers) == (request.method, request.target, list(request.headers))
    assert (body, http.buffered) == (theirs, len(server.trailing_data[0]))


statuses = st.sampled_from([200, 201, 204, 299, 304, 404, 500])


@settings(deadline=None, max_examples=200)
@given(request_=st.sampled_from([GET, HEAD, OLD, CLOSING]), status=statuses, parts=bodies, sized=st.booleans())
def test_what_is_written_h11_reads_as_it_was_meant(
    request_: bytes, status: int, parts: list[bytes], sized: bool
) -> None:
    whole = b"".join(parts)
    headers = [(b"x-test", b"a b")] + ([(b"content-length", b"%d" % len(whole))] if sized else [])
    written, reusable = respond(request_, status, headers, *parts)
    client = h11.Connection(h11.CLIENT)
    method = request_.split(b" ")[0].decode()
    asked = [("Host", "a"), ("Connection", "close" if request_ in (OLD, CLOSING) else "keep-alive")]
    client.send(h11.Request(method=method, target="/", headers=asked))
    client.send(h11.EndOfMessage())
    client.receive_data(written)
    if not reusable:
        client.receive_data(b"")
    response, theirs = client.next_event(), b""
    assert isinstance(response, h11.Response)
    assert response.status_code == status
    assert (b"x-test", b"a b") in list(response.headers)
    while isinstance(event := client.next_event(), h11.Data):
        theirs += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert theirs == (b"" if method == "HEAD" or status in (204, 304) else whole)
    assert client.trailing_data[0] == b""
    assert (client.their_state is h11.DONE) == reusable


@settings(deadline=None, max_examples=300)
@given(noise=st.binary(max_size=200), at=st.integers(0, 60), cut=st.integers(0, 250))
def test_noise_is_read_or_refused_and_nothing_else(noise: bytes, at: int, cut: int) -> None:
    plain = b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    raw = plain[:at] + noise + plain[at:]
    http, head = Http1(SMALL), None
    with contextlib.suppress(BadRequest):
        for piece in (raw[:cut], raw[cut:]):
            http.feed(piece)
            head = head or http.next_head()
            if head is not None:
                http.next_body()
