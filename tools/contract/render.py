"""Writes the source files of nerve/contract/generated/: one per area, and entities, errors, frames, routes."""

from typing import Any

from tools.contract.models import Module, attribute_name, member_name
from tools.contract.spec import Operation, Spec, SpecError

HEAD = '"""{title}  Generated from spec/ by `make contract`: do not edit."""\n\n'
PARAMETER_KINDS = ("path", "query", "header")
# Of replies that are no JSON.
REPLY_CLASSES = {"document": "Document", "html": "Document", "event_stream": "EventStream", "file": "FileReply"}


def render(spec: Spec) -> dict[str, str]:
    """File name to source, for everything under nerve/contract/generated/."""
    entities = Module("entities", spec.schemas, is_entities=True)
    for name in spec.schemas:
        if name not in entities.blocks:
            entities.entity(name)
    areas = sorted({op.area for op in spec.operations})
    files = {
        "__init__.py": HEAD.format(title="The contract as code."),
        "errors.py": _errors(spec),
        "entities.py": _module(entities, "Entities, shared by operations and frames."),
        "frames_client.py": _frames(spec, spec.client_frames, "ClientFrame", "Frames that a client sends."),
        "frames_server.py": _frames(spec, spec.server_frames, "ServerFrame", "Frames that the server sends."),
        "routes.py": _routes(areas, spec.operations),
    }
    for area in areas:
        files[f"{area}.py"] = _area(spec, area)
    return files


def _module(module: Module, title: str, extra: str = "", tail: str = "") -> str:
    source = extra + "\n\n".join(module.blocks.values()) + tail
    lines = [HEAD.format(title=title)]
    if "datetime" in source:
        lines.append("from datetime import datetime\n")
    if "StrEnum" in source:
        lines.append("from enum import StrEnum\n")
    typing = [name for name in ("Any", "Literal", "TypeAlias") if name in source]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}\n")
    attrs = [name for name in ("Factory", "field", "frozen") if f"{name}(" in source or f"@{name}" in source]
    if attrs:
        lines.append(f"\nfrom attrs import {', '.join(attrs)}\n")
    if module.imports:
        names = ", ".join(sorted(module.imports))
        lines.append(f"\nfrom nerve.contract.generated.entities import {names}\n")
    routing = (
        "AuthMode",
        "AuthPolicy",
        "BodyStream",
        "Document",
        "EventStream",
        "FileReply",
        "NoBody",
        "NoParams",
        "ReplyKind",
        "Route",
        "Work",
    )
    route = [name for name in routing if name in extra + tail]
    if route:
        lines.append(f"from nerve.contract.route import {', '.join(route)}\n")
    if "ErrorKind." in source and module.name != "errors":
        lines.append("from nerve.contract.generated.errors import ErrorCode, ErrorKind\n")
    if "Unset" in source:
        lines.append("from nerve.contract.unset import UNSET, Unset\n")
    return "".join(lines) + "\n\n" + source


# --- errors -------------------------------------------------------------------------------------------------------


def _errors(spec: Spec) -> str:
    codes = "".join(f"    {member_name(name)} = {name!r}\n" for name in spec.errors)
    rows = "".join(_error_row(name, error) for name, error in spec.errors.items())
    return (
        HEAD.format(title="Every error that a client can be told.")
        + "from enum import StrEnum\n\nfrom attrs import frozen\n\n\n"
        + "class ErrorKind(StrEnum):\n"
        + '    """The form of an error body; see spec/errors.yaml."""\n\n'
        + "".join(f"    {kind.upper()} = {kind!r}\n" for kind in ("detail", "field", "code", "reason", "validation"))
        + '\n\nclass ErrorCode(StrEnum):\n    """The name of an error."""\n\n'
        + codes
        + "\n\n@frozen\nclass ErrorSpec:\n"
        + '    """One declaration of spec/errors.yaml.  ``retry_after`` is in seconds."""\n\n'
        + "    status: int\n    kind: ErrorKind\n    message: str\n    extra: tuple[str, ...] = ()\n"
        + "    retry_after: int | None = None\n    varies: bool = False\n\n\n"
        + "ERRORS: dict[ErrorCode, ErrorSpec] = {\n"
        + rows
        + "}\n"
    )


def _error_row(name: str, error: dict[str, Any]) -> str:
    parts = [str(error["status"]), f"ErrorKind.{error['kind'].upper()}", repr(error["message"])]
    if error.get("extra"):
        parts.append(f"extra={tuple(error['extra'])!r}")
    if "retry_after" in error:
        parts.append(f"retry_after={error['retry_after']}")
    if error.get("varies"):
        parts.append("varies=True")
    return f"    ErrorCode.{member_name(name)}: ErrorSpec({', '.join(parts)}),\n"


# --- frames -------------------------------------------------------------------------------------------------------


def frame_class(frame_type: str) -> str:
    return "".join(part.capitalize() for part in frame_type.split("_")) + "Frame"


def frame_payload(frame: dict[str, Any]) -> dict[str, Any]:
    """The payload schema, with the ``seq`` that logged frames carry."""
    payload: dict[str, Any] = frame["payload"]
    if not frame["x-nerve"].get("logged"):
        return payload
    seq = {"type": "integer", "minimum": 1, "description": "The frame's number in its session's event log."}
    return {**payload, "properties": {**payload["properties"], "seq": seq}}


def _frames(spec: Spec, frames: dict[str, dict[str, Any]], union: str, title: str) -> str:
    module = Module(union, spec.schemas)
    names = []
    for frame_type, frame in frames.items():
        if frame["payload"]["properties"]["type"] != {"const": frame_type}:
            raise SpecError(f"ws: {frame_type}: its type must be the constant {frame_type}")
        schema = {"description": frame["summary"], **frame_payload(frame)}
        names.append(module.declare(frame_class(frame_type), schema, frame_type))
    tail = f"\n\n{union}: TypeAlias = (\n    " + "\n    | ".join(names) + "\n)\n"
    kind = "dict[str, type[Any]]"
    tail += f"\n{_upper(union)}S: {kind} = {{\n"
    tail += "".join(f"    {t!r}: {frame_class(t)},\n" for t in frames) + "}\n"
    parts = {t: f["x-nerve"]["part"] for t, f in frames.items()}
    tail += f"\n{_upper(union)}_PARTS: dict[str, int | Literal['later']] = {{\n"
    tail += "".join(f"    {t!r}: {part!r},\n" for t, part in parts.items()) + "}\n"
    if union == "ServerFrame":
        logged = [frame_class(t) for t, f in frames.items() if f["x-nerve"].get("logged")]
        tail += "\nLoggedFrame: TypeAlias = (\n    " + "\n    | ".join(logged) + "\n)\n"
    return _module(module, title, tail=tail)


def _upper(name: str) -> str:
    return attribute_name(name).upper()


# --- operations ---------------------------------------------------------------------------------------------------


def _area(spec: Spec, area: str) -> str:
    module = Module(area, spec.schemas)
    rows = [_route(module, op) for op in spec.operations if op.area == area]
    return _module(module, f"Operations of the area {area}.", tail="\n\n" + "\n".join(rows))


def _route(module: Module, op: Operation) -> str:
    body, required = "NoBody", False
    if "requestBody" in op.raw:
        content = op.raw["requestBody"]["content"]
        schema = next(iter(content.values()))["schema"]
        body = "BodyStream" if op.nerve.get("body") == "stream" else module.expression(schema, op.operation_id)
        required = op.raw["requestBody"].get("required", False)
    replies = _replies(module, op)
    errors = ", ".join(f"ErrorCode.{member_name(n)}: ErrorKind.{k.upper()}" for n, k in op.errors.items())
    modes = op.nerve.get("modes", ["local", "external"])
    refusal = op.nerve.get("refusal", "person_required")
    union = " | ".join(dict.fromkeys(replies.values()))
    params = _params(module, op)
    return (
        f"{op.constant}: Route[{params}, {body}, {union}] = Route(\n"
        f"    operation_id={op.operation_id!r},\n    method={op.method!r},\n    path={op.path!r},\n"
        f"    params={params},\n    body={body},\n    body_required={required},\n"
        f"    replies={{{', '.join(f'{s}: {_runtime(t)}' for s, t in replies.items())}}},\n"
        f"    kind=ReplyKind.{op.nerve.get('reply', 'json').upper()},\n"
        f"    auth=AuthPolicy.{op.nerve['auth'].upper()},\n    refusal=ErrorCode.{member_name(refusal)},\n"
        f"    modes=frozenset({{{', '.join(f'AuthMode.{m.upper()}' for m in modes)}}}),\n"
        f"    work=Work.{op.nerve['work'].upper()},\n    any_host={op.nerve.get('host') == 'any'},\n"
        f"    headers={_headers(op)!r},\n{_streaming(op)}"
        f"    errors={{{errors}}},\n)\n"
    )


def _streaming(op: Operation) -> str:
    """What is said of a body that its handler reads itself."""
    if op.nerve.get("body") != "stream":
        return ""
    media_type = next(iter(op.raw["requestBody"]["content"]))
    return f"    media_type={media_type!r},\n    max_body_bytes={op.nerve['body_limit']},\n"


def _headers(op: Operation) -> tuple[str, ...]:
    return tuple(parameter["name"] for parameter in op.raw["parameters"] if parameter["in"] == "header")


def _runtime(expression: str) -> str:
    return expression if expression.isidentifier() else f"({expression})"


def _replies(module: Module, op: Operation) -> dict[str, str]:
    kind = REPLY_CLASSES.get(op.nerve.get("reply", "json"))
    if kind is not None:
        return dict.fromkeys(op.raw["responses"], kind)
    found = {}
    for status, response in op.raw["responses"].items():
        found[status] = module.expression(response["content"]["application/json"]["schema"], op.operation_id)
    if not found:
        raise SpecError(f"{op.operation_id}: no success status")
    return found


def _params(module: Module, op: Operation) -> str:
    parameters = op.raw["parameters"]
    if not parameters:
        return "NoParams"
    properties, required = {}, []
    for parameter in parameters:
        if parameter["in"] not in PARAMETER_KINDS:
            raise SpecError(f"{op.operation_id}: {parameter['name']}: only path, query and header parameters")
        properties[parameter["name"]] = parameter["schema"]
        if parameter.get("required") or parameter["in"] == "path":
            required.append(parameter["name"])
    schema = {
        "type": "object",
        "description": f"Parameters of {op.operation_id}.",
        "additionalProperties": True,
        "properties": properties,
        "required": required,
    }
    return module.declare(f"{op.class_stem}Params", schema, op.operation_id)


def _routes(areas: list[str], operations: tuple[Operation, ...]) -> str:
    lines = [HEAD.format(title="The route table.")]
    lines += ["from typing import Any\n\n"]
    for area in areas:
        names = ", ".join(sorted(op.constant for op in operations if op.area == area))
        lines.append(f"from nerve.contract.generated.{area} import {names}\n")
    lines.append("from nerve.contract.route import Route\n\n")
    lines.append("ROUTES: tuple[Route[Any, Any, Any], ...] = (\n")
    lines += [f"    {op.constant},\n" for op in operations]
    return "".join([*lines, ")\n"])
