"""Reads spec/ for tests, apart from the generator's reader: two readers, one promise."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import frozen
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor

ROOT = Path(__file__).resolve().parents[2] / "spec"
METHODS = ("get", "post", "put", "patch", "delete")


class _TextInstants(SafeConstructor):
    """Of its own, because constructors are registered with the class: others read YAML in this process too."""


_TextInstants.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)


def load(path: Path) -> Any:
    """The plain values of a file; duplicate keys are refused, instants stay text."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _TextInstants
    return yaml.load(path.read_text(encoding="utf-8"))


@frozen
class Call:
    """One operation as spec/rest writes it."""

    area: str
    path: str
    method: str
    raw: dict[str, Any]
    errors_as: str | None

    @property
    def id(self) -> str:
        return str(self.raw["operationId"])

    @property
    def nerve(self) -> dict[str, Any]:
        return dict(self.raw["x-nerve"])

    def error_names(self) -> list[str]:
        return [next(iter(e)) if isinstance(e, dict) else e for e in self.nerve.get("errors", [])]

    @property
    def takes(self) -> str | None:
        """The media type of its body; None for an operation without one."""
        return next(iter(self.raw["requestBody"]["content"])) if "requestBody" in self.raw else None

    def contents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What it takes and answers: ("request" or a status, the media object)."""
        if "requestBody" in self.raw:
            yield "request", next(iter(self.raw["requestBody"]["content"].values()))
        for status, response in self.raw["responses"].items():
            yield status, next(iter(response["content"].values()))


def _calls() -> Iterator[Call]:
    for path in sorted((ROOT / "rest").glob("*.yaml")):
        fragment = load(path)
        for route, methods in fragment["paths"].items():
            for method in methods.keys() & set(METHODS):
                yield Call(path.stem, route, method, methods[method], fragment.get("x-nerve-errors-as"))


CALLS = sorted(_calls(), key=lambda call: call.id)
ERRORS: dict[str, dict[str, Any]] = load(ROOT / "errors.yaml")
COMMON: dict[str, Any] = load(ROOT / "common.yaml")
INFO: dict[str, Any] = load(ROOT / "info.yaml")
ENTITIES: dict[str, dict[str, Any]] = {p.stem: load(p) for p in sorted((ROOT / "schemas").glob("*.yaml"))}
CLIENT: dict[str, dict[str, Any]] = load(ROOT / "ws" / "client.yaml")["messages"]
SERVER: dict[str, dict[str, Any]] = load(ROOT / "ws" / "server.yaml")["messages"]
TRANSCRIPTS: dict[str, list[dict[str, Any]]] = {
    p.stem: load(p) for p in sorted((ROOT / "examples" / "transcripts").glob("*.yaml"))
}


def payload_schema(frame: dict[str, Any]) -> dict[str, Any]:
    """The payload with the number of a logged frame; only an ``error`` comes with and without one."""
    payload: dict[str, Any] = frame["payload"]
    if not frame["x-nerve"].get("logged"):
        return payload
    required = payload["required"] if frame["name"] == "error" else [*payload["required"], "seq"]
    seq = {"type": "integer", "minimum": 1}
    return {**payload, "required": required, "properties": {**payload["properties"], "seq": seq}}


def complaints(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with ``value``; empty if it fits."""
    checker = Draft202012Validator({**schema, "components": {"schemas": ENTITIES}})
    return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(value)]


def frame_complaints(side: str, frame: dict[str, Any]) -> list[str]:
    known = _payload_schemas(side)
    schema = known.get(frame.get("type", ""))
    return [f"unknown type {frame.get('type')!r}"] if schema is None else complaints(schema, frame)


@lru_cache(maxsize=2)
def _payload_schemas(side: str) -> dict[str, dict[str, Any]]:
    return {name: payload_schema(frame) for name, frame in (CLIENT if side == "client" else SERVER).items()}


def walk(value: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping inside ``value`` that is a schema or could be one; examples are left out."""
    if isinstance(value, dict):
        yield where, value
        for key, item in value.items():
            if key not in ("example", "examples"):
                yield from walk(item, f"{where}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, f"{where}/{index}")
