"""Files over REST: what sessions change (contract chapter Modified Files)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.files import (
    FILES_DIFF,
    FILES_MODIFIED,
    FileDiff,
    FilesDiffParams,
    FilesModifiedParams,
    ModifiedFiles,
)
from nerve.contract.route import NoBody
from nerve.routes.binding import bind
from nerve.runtime.file_changes import FileChanges
from nerve.services import Services


def _changes(services: Services) -> FileChanges:
    comparing = services.supervisor.house.comparing
    return FileChanges(services.database, services.effects, services.config.workspace, comparing)


async def modified(services: Services, caller: Caller, params: FilesModifiedParams, body: NoBody) -> ModifiedFiles:
    return await _changes(services).modified(params.session_id)


async def diff(services: Services, caller: Caller, params: FilesDiffParams, body: NoBody) -> FileDiff:
    return await _changes(services).diff(params.session_id, params.path, params.context)


ENDPOINTS = (
    bind(FILES_MODIFIED, modified),
    bind(FILES_DIFF, diff),
)
