"""A reply that is read from a file while it is sent."""

import trio

from nerve.asgi.protocol import GONE, ClientLeft, Message, RawHeaders, Send
from nerve.contract.route import FileReply

STALL_SECONDS = 30.0  # for a piece of 64 KiB: two kilobytes a second are still a reader


class FileCutShort(RuntimeError):
    """The file ended before the size that was promised; the client has to notice, so the reply is not completed."""


async def _piece(file: FileReply, offset: int) -> bytes:
    try:
        piece = (await file.read(offset))[: file.size - offset]
    except OSError as error:
        raise FileCutShort from error
    if not piece:
        raise FileCutShort
    return piece


async def deliver_file(status: int, headers: RawHeaders, file: FileReply, send: Send, *, head_only: bool) -> int:
    """Send the head and, piece by piece, the file; how many bytes of it.  Raises ClientLeft and FileCutShort."""

    async def tell(message: Message) -> None:
        with trio.fail_after(STALL_SECONDS):
            await send(message)

    sent = 0
    try:
        headers.append((b"content-length", b"%d" % file.size))
        await tell({"type": "http.response.start", "status": status, "headers": headers})
        while sent < file.size and not head_only:
            piece = await _piece(file, sent)
            await tell({"type": "http.response.body", "body": piece, "more_body": True})
            sent += len(piece)
        await tell({"type": "http.response.body", "body": b"", "more_body": False})
    except (*GONE, trio.TooSlowError):
        raise ClientLeft from None
    finally:
        file.close()
    return sent
