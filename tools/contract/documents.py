"""Assembles the served documents: OpenAPI 3.1 and AsyncAPI 3."""

from typing import Any

from tools.contract.render import frame_payload
from tools.contract.spec import Operation, Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}


def openapi(spec: Spec) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for op in spec.operations:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(spec, op)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": DIALECT,
        "info": {key: spec.info[key] for key in ("title", "version", "summary", "description")},
        "tags": spec.info["tags"],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**spec.schemas, **_error_schemas()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "nerve_token"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            },
        },
    }


def _operation(spec: Spec, op: Operation) -> dict[str, Any]:
    raw = {key: value for key, value in op.raw.items() if key != "responses"}
    if not raw["parameters"]:
        del raw["parameters"]
    raw["security"] = [] if op.nerve["auth"] == "open" else [{"bearer": []}, {"cookie": []}, {"query": []}]
    raw["responses"] = {**op.raw["responses"], **_error_responses(spec, op)}
    return raw


def _error_responses(spec: Spec, op: Operation) -> dict[str, Any]:
    by_status: dict[str, list[str]] = {}
    for name in op.errors:
        by_status.setdefault(str(spec.errors[name]["status"]), []).append(name)
    return {status: _error_response(spec, op, by_status[status]) for status in sorted(by_status)}


def _error_response(spec: Spec, op: Operation, names: list[str]) -> dict[str, Any]:
    schemas = []
    for name in names:
        kind = op.errors[name]
        schema: dict[str, Any] = {"$ref": f"#/components/schemas/{kind.capitalize()}Error"}
        if kind in ("code", "reason"):
            schema = _named_error(spec, name, kind)
        if schema not in schemas:
            schemas.append(schema)
    response: dict[str, Any] = {
        "description": "  ".join(f"{name}: {spec.errors[name]['message']}" for name in names),
        "x-nerve-errors": {name: op.errors[name] for name in names},
        "content": {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}},
    }
    if any("retry_after" in spec.errors[name] for name in names):
        response["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return response


def _named_error(spec: Spec, name: str, kind: str) -> dict[str, Any]:
    """The body of one code or reason error; its extra keys are part of it."""
    extra: dict[str, Any] = {key: {} for key in spec.errors[name].get("extra", ())}
    detail = {kind: {"const": name}, "message": TEXT, **extra}
    return _object({"detail": _object(detail)})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _error_schemas() -> dict[str, Any]:
    problem = _object({"type": TEXT, "loc": {"type": "array", "items": {"type": ["string", "integer"]}}, "msg": TEXT})
    return {
        "DetailError": _object({"detail": TEXT}),
        "FieldError": _object({"detail": TEXT, "field": TEXT}),
        "ValidationError": _object({"detail": {"type": "array", "minItems": 1, "items": problem}}),
    }


def asyncapi(spec: Spec) -> dict[str, Any]:
    sides = {"client": spec.client_frames, "server": spec.server_frames}
    messages = {
        f"{side}.{name}": _message(name, frame) for side, frames in sides.items() for name, frame in frames.items()
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": f"{spec.info['title']} WebSocket", "version": spec.info["version"]},
        "defaultContentType": "application/json",
        "channels": {
            "ws": {
                "address": "/ws",
                "description": "Connect with ?token=, the cookie nerve_token or a bearer header; the first bind may be "
                "chosen with ?session_id= and ?after_seq=.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
                "bindings": {"ws": {"method": "GET", "query": _query()}},
            }
        },
        "operations": {
            side: {
                "action": "receive" if side == "client" else "send",
                "channel": {"$ref": "#/channels/ws"},
                "messages": [{"$ref": f"#/channels/ws/messages/{side}.{name}"} for name in frames],
            }
            for side, frames in sides.items()
        },
        "components": {"messages": messages, "schemas": spec.schemas},
    }


def _query() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"token": TEXT, "session_id": TEXT, "after_seq": {"type": "integer", "minimum": 0}},
    }


def _message(name: str, frame: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "summary": frame["summary"],
        **({"description": frame["description"]} if "description" in frame else {}),
        "x-nerve": frame["x-nerve"],
        "payload": frame_payload(frame),
        "examples": frame["examples"],
    }
