"""What every socket client of the tests can say and hear, in terms of sending and receiving one frame."""

import json as jsonlib
from typing import Any

import trio

from tests.asgi_wire import WAIT_SECONDS, Closed


class SocketWords:
    async def send_text(self, text: str) -> None:
        raise NotImplementedError

    async def receive(self, within: float = WAIT_SECONDS) -> str | bytes | Closed:
        """The next frame, or how the socket was closed (again and again from then on)."""
        raise NotImplementedError

    async def send_json(self, frame: Any) -> None:
        await self.send_text(jsonlib.dumps(frame))

    async def receive_json(self, within: float = WAIT_SECONDS) -> Any:
        """The next frame, which has to be a text frame."""
        frame = await self.receive(within)
        assert isinstance(frame, str), f"expected a text frame, got {frame!r}"
        return jsonlib.loads(frame)

    async def receive_until(self, type: str, within: float = WAIT_SECONDS) -> list[Any]:
        """All frames up to and with the first one of ``type``."""
        frames: list[Any] = []
        with trio.fail_after(within):
            while not frames or frames[-1]["type"] != type:
                frames.append(await self.receive_json(within))
        return frames

    async def expect_close(self, code: int | None = None, within: float = WAIT_SECONDS) -> Closed:
        """Read on, past any frames, until the server closes."""
        with trio.fail_after(within):
            while not isinstance(frame := await self.receive(within), Closed):
                pass
        assert code is None or frame.code == code, f"closed with {frame}, expected {code}"
        return frame
