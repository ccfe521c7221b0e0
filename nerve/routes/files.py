"""Files over REST: what sessions change (contract chapter Modified Files), uploads and downloads."""

from contextlib import aclosing
from functools import partial
from pathlib import Path

from nerve.config import Config
from nerve.contract.caller import Caller
from nerve.contract.generated.files import (
    FILES_DIFF,
    FILES_DOWNLOAD,
    FILES_MODIFIED,
    FILES_UPLOAD,
    FILES_UPLOADED,
    FileDiff,
    FilesDiffParams,
    FilesDownloadParams,
    FilesModifiedParams,
    FilesUploadedParams,
    FilesUploadParams,
    ModifiedFiles,
    UploadedFile,
    UploadedFiles,
    UploadedFileType,
)
from nerve.contract.route import BodyStream, FileReply, NoBody
from nerve.domain.attachments import UNKNOWN_TYPE, AttachmentKind, file_name
from nerve.files.opened import OpenedFile
from nerve.routes.binding import bind
from nerve.routes.forms import files_of
from nerve.runtime.downloads import Downloads
from nerve.runtime.file_changes import FileChanges
from nerve.runtime.uploads import Uploads
from nerve.services import Services


def _changes(services: Services) -> FileChanges:
    comparing = services.supervisor.house.comparing
    return FileChanges(services.database, services.effects, services.config.workspace, comparing)


async def modified(services: Services, caller: Caller, params: FilesModifiedParams, body: NoBody) -> ModifiedFiles:
    return await _changes(services).modified(params.session_id)


async def diff(services: Services, caller: Caller, params: FilesDiffParams, body: NoBody) -> FileDiff:
    return await _changes(services).diff(params.session_id, params.path, params.context)


def _uploads(services: Services) -> Uploads:
    return Uploads(services.database, services.effects, services.config.workspace)


async def upload(services: Services, caller: Caller, params: FilesUploadParams, body: BodyStream) -> UploadedFiles:
    """Replies once all files are on disk; of a client that leaves before nothing is kept."""
    async with aclosing(files_of(body)) as pieces:
        kept = await _uploads(services).receive(pieces, params.session_id or None, caller.actor_id)
    return UploadedFiles(
        files=[
            UploadedFile(
                id=file.id,
                filename=file.filename,
                media_type=file.media_type,
                file_type=UploadedFileType(file.kind),
                size=file.size,
            )
            for file in kept
        ]
    )


async def uploaded(services: Services, caller: Caller, params: FilesUploadedParams, body: NoBody) -> FileReply:
    file, opened = await _uploads(services).open(params.file_id)
    shown = file.kind == AttachmentKind.IMAGE
    # The type that a sender claims could make a script of it.
    return _reply(services, opened, file.filename, file.media_type if shown else UNKNOWN_TYPE, inline=shown)


async def download(services: Services, caller: Caller, params: FilesDownloadParams, body: NoBody) -> FileReply:
    downloads = Downloads(services.database, services.effects, services.config.workspace, _closed(services.config))
    opened = await downloads.open(params.path)
    return _reply(services, opened, file_name(params.path), UNKNOWN_TYPE)


def _closed(config: Config) -> tuple[Path, ...]:
    """What is the server's own: its home, the configuration of this machine, its private key."""
    key = config.gateway.ssl.key
    return (config.paths.home, *config.paths.layers, *(() if key is None else (key,)))


def _reply(
    services: Services, opened: OpenedFile, filename: str, media_type: str, *, inline: bool = False
) -> FileReply:
    read = partial(services.effects.blocking, opened.read)
    return FileReply(opened.size, media_type, filename, read, opened.close, inline)


ENDPOINTS = (
    bind(FILES_MODIFIED, modified),
    bind(FILES_DIFF, diff),
    bind(FILES_UPLOAD, upload),
    bind(FILES_UPLOADED, uploaded),
    bind(FILES_DOWNLOAD, download),
)
