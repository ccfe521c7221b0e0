"""``write``, ``edit`` and ``delete``: real files, as the tools of those names."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from nerve.adapters.protocol import FileChanged, FileOperation, PlanUpdated
from nerve.adapters.scripted import files
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import DeleteFile, EditFile, WriteFile
from nerve.errors import NerveError

FileStep = WriteFile | EditFile | DeleteFile


async def perform(part: Part, step: FileStep) -> None:
    cwd = part.session.cwd
    path = str(cwd / step.path) if "\0" not in step.path else step.path
    problem: str | None = None
    try:
        at = _place(part, step.path)
        path = str(at.path)
    except files.FileProblem as refused:
        problem = str(refused)
    tool, operation, tool_input = _as_tool(step, path)
    tool_use_id = await part.start_tool(tool, tool_input)
    if problem is not None:
        await part.finish_tool(tool_use_id, problem, True)
        return
    # A changed file whose change nobody was told of would be worse than an interrupt that is a moment late.
    with part.interruption.deaf():
        try:
            result = await _changed(part, step, at, tool_use_id)
        except files.FileProblem as refused:
            await part.finish_tool(tool_use_id, str(refused), True)
            return
        await part.finish_tool(tool_use_id, result, False)
        await part.stage.emit(FileChanged(path, operation, tool_use_id))
        if at is part.plan_file and operation is not FileOperation.DELETE:
            with suppress(files.FileProblem):
                await part.stage.emit(PlanUpdated(await part.effects.blocking(files.read, at)))


def _place(part: Part, path: str) -> files.Place:
    """Raises FileProblem outside of the working directory; the plan file alone may lie elsewhere (decisions D47c)."""
    if os.path.normpath(part.session.cwd / path) == str(part.plan_file.path):
        return part.plan_file
    return files.place(part.session.cwd, path, part.closed)


async def _changed(part: Part, step: FileStep, at: files.Place, tool_use_id: str) -> str:
    """Check, keep what is there, change; gives the result.  Raises FileProblem, and then nothing has changed."""
    blocking = part.effects.blocking
    scratch = f".{tool_use_id}.tmp"
    match step:
        case WriteFile(content=content):
            await blocking(files.check_writable, at)
            await _keep(part, at.path)
            new = await blocking(files.write, at, content, scratch)
            return f"{'Created' if new else 'Wrote'} {at.path}"
        case EditFile(old=old, new=new_text):
            await blocking(files.check_edit, at, old)
            await _keep(part, at.path)
            await blocking(files.edit, at, old, new_text, scratch)
            return f"Edited {at.path}"
        case DeleteFile():
            await blocking(files.check_deletable, at)
            await _keep(part, at.path)
            await blocking(files.delete, at)
            return f"Deleted {at.path}"


async def _keep(part: Part, path: Path) -> None:
    try:
        await part.session.host.before_file_change(path)
    except NerveError as error:
        raise files.FileProblem(f"{path} was not changed: its content could not be kept ({error})") from None


def _as_tool(step: FileStep, path: str) -> tuple[str, FileOperation, dict[str, Any]]:
    match step:
        case WriteFile(content=content):
            return "Write", FileOperation.WRITE, {"file_path": path, "content": content}
        case EditFile(old=old, new=new):
            return "Edit", FileOperation.EDIT, {"file_path": path, "old_string": old, "new_string": new}
        case DeleteFile():
            return "Delete", FileOperation.DELETE, {"file_path": path}
