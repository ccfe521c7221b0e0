"""The files of a form (``multipart/form-data``, RFC 7578), as its bytes come."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from nerve.contract.route import BodyStream
from nerve.domain.attachments import PER_MESSAGE
from nerve.errors import ErrorCode, NerveError, Problem
from nerve.runtime.uploads import FilePiece, IncomingFile

MOST_PARTS = 50
MOST_HEADER = 2048  # bytes of one header line of a part
LONGEST_BOUNDARY = 70  # RFC 2046 5.1.1


async def files_of(body: BodyStream) -> AsyncGenerator[FilePiece, None]:
    """Each file from its beginning to its end; parts without a filename are dropped.

    Has to be closed if it is left early.  Raises INVALID_REQUEST for what is no form, has no files or too many, and
    what the body raises.
    """
    count = 0
    wanted = False
    with _told_problems():
        parser = PushMultipartParser(
            _boundary(body.content_type),
            max_header_size=MOST_HEADER,
            max_segment_count=MOST_PARTS,
        )
        async for part in body.parts:
            for event in parser.parse(part):
                if isinstance(event, MultipartSegment):
                    wanted = bool(event.filename)
                    if not wanted:
                        continue
                    count += 1
                    if count > PER_MESSAGE:
                        raise _unfit("too_long", f"A form has at most {PER_MESSAGE} files.")
                    yield IncomingFile(event.filename or "", event.content_type)
                elif wanted:
                    yield None if event is None else bytes(event)
        parser.close()
    if not count:
        raise _unfit("missing", "The form has no file.")


def _boundary(content_type: str) -> str:
    boundary = parse_options_header(content_type)[1].get("boundary", "")
    if not (boundary.isascii() and 0 < len(boundary) <= LONGEST_BOUNDARY):
        raise _unfit("multipart_invalid", "The content type names no usable boundary.")
    return str(boundary)


@contextmanager
def _told_problems() -> Iterator[None]:
    try:
        yield
    except MultipartError:
        raise _unfit("multipart_invalid", "This is not a valid form.") from None


def _unfit(kind: str, message: str) -> NerveError:
    return NerveError(ErrorCode.INVALID_REQUEST, problems=[Problem(kind, ("body", "files"), message)])
