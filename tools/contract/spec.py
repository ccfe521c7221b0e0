"""Reads spec/ into plain values and refuses what the format of spec/README.md does not allow."""

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

from attrs import field, frozen
from ruamel.yaml import YAML

HTTP_METHODS = ("get", "post", "put", "patch", "delete")
KINDS = ("detail", "field", "code", "reason", "validation")


class SpecError(Exception):
    """Something in spec/ that the format doesn't allow; names the file or operation."""


@frozen
class Operation:
    operation_id: str
    method: str
    path: str
    area: str
    raw: dict[str, Any]
    nerve: dict[str, Any]
    errors: dict[str, str]  # name -> kind of body, in the order of declaration, the common ones included

    @property
    def constant(self) -> str:
        return self.operation_id.replace(".", "_").upper()

    @property
    def class_stem(self) -> str:
        return "".join(part.capitalize() for part in self.operation_id.replace(".", "_").split("_"))


@frozen
class Spec:
    info: dict[str, Any]
    errors: dict[str, dict[str, Any]]
    schemas: dict[str, dict[str, Any]]
    operations: tuple[Operation, ...]
    client_frames: dict[str, dict[str, Any]]
    server_frames: dict[str, dict[str, Any]]
    before_routing: tuple[str, ...]
    plays: dict[str, Any] | None = field(default=None)
    tools: dict[str, dict[str, Any]] = field(factory=dict)


def read_yaml(path: Path) -> Any:
    return _plain(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))


def _plain(value: Any) -> Any:
    """YAML reads unquoted instants as datetimes; in examples they are text, as on the wire."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def read_spec(root: Path) -> Spec:
    errors = read_yaml(root / "errors.yaml")
    for name, error in errors.items():
        if error.get("kind") not in KINDS:
            raise SpecError(f"errors.yaml: {name}: unknown kind {error.get('kind')!r}")
    common = read_yaml(root / "common.yaml")
    schemas = {path.stem: read_yaml(path) for path in sorted((root / "schemas").glob("*.yaml"))}
    operations = tuple(sorted(_operations(root, errors, common["groups"]), key=lambda op: op.operation_id))
    seen: set[str] = set()
    for op in operations:
        if op.operation_id in seen:
            raise SpecError(f"{op.operation_id}: declared twice")
        seen.add(op.operation_id)
    plays = root / "plays" / "play.yaml"
    return Spec(
        info=read_yaml(root / "info.yaml"),
        errors=errors,
        schemas=schemas,
        operations=operations,
        client_frames=read_yaml(root / "ws" / "client.yaml")["messages"],
        server_frames=read_yaml(root / "ws" / "server.yaml")["messages"],
        before_routing=tuple(common["before_routing"]),
        plays=read_yaml(plays) if plays.exists() else None,
        tools=dict(_tools(root)),
    )


def _tools(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The built-in tools by name; what an agent sends them is an object, and keys that are not known are ignored."""
    for path in sorted((root / "tools").glob("*.yaml")):
        tool = read_yaml(path)
        if tool.keys() != {"description", "input"}:
            raise SpecError(f"tools/{path.name}: a tool has a description and an input, nothing else")
        if tool["input"].get("type") != "object" or tool["input"].get("additionalProperties") is not True:
            raise SpecError(f"tools/{path.name}: the input must be an object that takes additional properties")
        yield path.stem, tool


def _operations(root: Path, errors: dict[str, Any], groups: list[dict[str, Any]]) -> Iterator[Operation]:
    for path in sorted((root / "rest").glob("*.yaml")):
        fragment = read_yaml(path)
        as_kind = fragment.get("x-nerve-errors-as")
        for route, methods in fragment["paths"].items():
            shared = methods.get("parameters", [])
            for method in (m for m in HTTP_METHODS if m in methods):
                raw = methods[method]
                raw = {**raw, "parameters": [*shared, *raw.get("parameters", [])]}
                raw.setdefault("tags", fragment.get("tags", [path.stem]))
                nerve = raw["x-nerve"]
                declared = _declared_errors(raw, nerve, errors, groups, as_kind)
                yield Operation(raw["operationId"], method.upper(), route, path.stem, raw, nerve, declared)


def _declared_errors(
    raw: dict[str, Any],
    nerve: dict[str, Any],
    errors: dict[str, Any],
    groups: list[dict[str, Any]],
    as_kind: str | None,
) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in nerve.get("errors", []):
        name, kind = next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)
        if name not in errors:
            raise SpecError(f"{raw['operationId']}: unknown error {name}")
        own = errors[name]["kind"]
        found[name] = kind or (as_kind if as_kind and own == "detail" else own)
    without = set(nerve.get("without", ()))
    for group in groups:
        if applies(group["when"], raw, nerve):
            for name in group["errors"]:
                real = nerve.get("refusal", "person_required") if name == "refusal" else name
                if real not in errors:
                    raise SpecError(f"{raw['operationId']}: unknown error {real}")
                if real not in without:
                    found.setdefault(real, errors[real]["kind"])
    return found


def applies(when: str, raw: dict[str, Any], nerve: dict[str, Any]) -> bool:
    """The rules that spec/common.yaml names."""
    signed_in = nerve["auth"] in ("any", "person")
    match when:
        case "every":
            return True
        case "host":
            return bool(nerve.get("host") != "any")
        case "credential":
            return signed_in
        case "person":
            return bool(nerve["auth"] == "person")
        case "ambient_write":
            return bool(signed_in and nerve["work"] == "write")
        case "body":
            return "requestBody" in raw
        case "params":
            return any(_has_rules(p["schema"]) for p in raw["parameters"])
        case "write":
            return bool(nerve["work"] == "write")
    raise SpecError(f"common.yaml: unknown rule {when!r}")


def _has_rules(schema: dict[str, Any]) -> bool:
    return schema.get("type") != "string" or bool(schema.keys() & {"enum", "pattern", "minLength", "maxLength"})
