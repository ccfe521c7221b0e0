"""What the server under attack serves: a small app that can be slow, deaf, talkative or broken, and that counts."""

import json
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import trio

Handler = Callable[[Any, Any, Any], Awaitable[None]]
PATTERN = b"0123456789abcdef" * 4096  # 64 KiB


class VictimApp:
    """``seen`` counts what happened; it is part of ``GET /census``."""

    def __init__(self, lifespan: str = "fine") -> None:
        self._lifespan = lifespan
        self.seen: Counter[str] = Counter()
        self.fall = trio.Event()
        self._http: dict[str, Handler] = {
            "/ok": self._ok,
            "/census": self._census,
            "/forget": self._forget,
            "/echo": self._echo,
            "/deaf": self._deaf,
            "/big": self._big,
            "/wait": self._wait,
            "/work": self._work,
            "/last": self._last,
            "/stream": self._stream,
            "/crash": self._crash,
            "/crash-midway": self._crash_midway,
            "/silent": self._silent,
            "/fall": self._fall,
        }
        self._sockets: dict[str, Handler] = {
            "/": self._socket_echo,
            "/echo": self._socket_echo,
            "/busy": self._socket_busy,
            "/flood": self._socket_flood,
            "/crash": self._socket_crash,
            "/refuse": self._socket_refuse,
            "/close": self._socket_close,
            "/slow-accept": self._socket_slow_accept,
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._http.get(scope["path"], self._not_found)(scope, receive, send)
            case "websocket":
                assert (await receive())["type"] == "websocket.connect"
                await self._sockets.get(scope["path"], self._socket_refuse)(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        if self._lifespan == "broken":
            raise RuntimeError("no start")
        await receive()
        await send({"type": "lifespan.startup.complete"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fall_when_told)
            await receive()
            nursery.cancel_scope.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _fall_when_told(self) -> None:
        await self.fall.wait()
        raise RuntimeError("the app fell")

    # --- HTTP -----------------------------------------------------------------------------------------------------

    async def _not_found(self, scope: Any, receive: Any, send: Any) -> None:
        await _answer(send, 404, b"no such page")

    async def _ok(self, scope: Any, receive: Any, send: Any) -> None:
        await _answer(send, 200, b"ok")

    async def _census(self, scope: Any, receive: Any, send: Any) -> None:
        census = {
            "tasks": trio.lowlevel.current_statistics().tasks_living,
            "files": len(os.listdir("/proc/self/fd")),
            "resident": _resident_bytes(),
            "seen": self.seen,
        }
        await _answer(send, 200, json.dumps(census).encode())

    async def _forget(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.clear()
        await _answer(send, 200, b"")

    async def _echo(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.seen["body cut"] += 1
                return
            body += message["body"]
            if not message["more_body"]:
                break
        await _answer(send, 200, body)

    async def _deaf(self, scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(0.2)
        await _answer(send, 200, b"not listening")

    async def _last(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers once the server has been told to end, and has begun to."""
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        await _answer(send, 200, b"the last one")

    async def _big(self, scope: Any, receive: Any, send: Any) -> None:
        size = 512 * len(PATTERN)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        try:
            for _ in range(512):
                await send({"type": "http.response.body", "body": PATTERN, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            self.seen["big broke"] += 1
            raise

    async def _wait(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen["waiting"] += 1
        while (await receive())["type"] != "http.disconnect":
            pass
        self.seen["left"] += 1

    async def _work(self, scope: Any, receive: Any, send: Any) -> None:
        """As long as the query says, in the block that the server gives."""
        self.seen["working"] += 1
        async with scope["extensions"]["nerve.watch"]():
            await trio.sleep(float(scope["query_string"]))
            await _answer(send, 200, b"done")
            return
        self.seen["work cancelled"] += 1

    async def _stream(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(3):
            await send({"type": "http.response.body", "body": b"part %d\n" % number, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _crash(self, scope: Any, receive: Any, send: Any) -> None:
        raise ValueError(scope["query_string"])

    async def _crash_midway(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError

    async def _silent(self, scope: Any, receive: Any, send: Any) -> None:
        return

    async def _fall(self, scope: Any, receive: Any, send: Any) -> None:
        await _answer(send, 200, b"falling")
        self.fall.set()

    # --- WebSocket ------------------------------------------------------------------------------------------------

    async def _socket_echo(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.seen[f"closed {message['code']} {message.get('reason', '')}".strip()] += 1
                return
            if message.get("text") is not None:
                await send({"type": "websocket.send", "text": message["text"]})
            else:
                await send({"type": "websocket.send", "bytes": message["bytes"]})

    async def _socket_busy(self, scope: Any, receive: Any, send: Any) -> None:
        """Accepts, and then has no time for what comes."""
        await send({"type": "websocket.accept"})
        await trio.sleep(3600)

    async def _socket_flood(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "bytes": PATTERN})
        except OSError:
            self.seen["flood broke"] += 1

    async def _socket_crash(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await receive()
        raise ValueError

    async def _socket_refuse(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.close"})

    async def _socket_close(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4001, "reason": "go"})

    async def _socket_slow_accept(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()  # the client leaves, or breaks the rules, before it was let in
        self.seen[f"early {message['type']}"] += 1


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
