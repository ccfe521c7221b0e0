"""The yardstick: Hypercorn on trio as it comes, answering every request with ``ok``."""

import sys
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve


async def ok(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def main() -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    trio.run(serve, ok, config)


if __name__ == "__main__":
    main()
