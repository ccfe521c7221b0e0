"""Renders /docs: one page of plain HTML that needs no script and no other host."""

import json
import re
from html import escape
from typing import Any

from tools.contract.render import frame_payload
from tools.contract.spec import Operation, Spec

STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881}
body{font:15px/1.55 system-ui,sans-serif;margin:0 auto;max-width:62rem;padding:1rem 1.2rem 6rem}
h1{margin-bottom:.2rem}h2{border-bottom:1px solid var(--line);margin-top:3rem;padding-bottom:.3rem}
nav{columns:14rem;font-size:.9rem;background:var(--soft);padding:.8rem 1rem;border-radius:.5rem}
nav a{display:block;text-decoration:none}
article{border:1px solid var(--line);border-radius:.5rem;margin:1rem 0;padding:.2rem 1rem 1rem}
article h3{font-family:ui-monospace,monospace;font-size:1rem}
.method{display:inline-block;min-width:3.6rem;font-weight:700}
.tag{border:1px solid var(--line);border-radius:1rem;font-size:.8rem;padding:0 .6rem;margin-right:.4rem}
pre{background:var(--soft);border-radius:.4rem;overflow:auto;padding:.6rem .8rem;font-size:.85rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{border-top:1px solid var(--line);padding:.25rem .5rem;
text-align:left;vertical-align:top}code{font-family:ui-monospace,monospace;font-size:.9em}
"""


def page(spec: Spec) -> str:
    title = escape(str(spec.info["title"]))
    areas = [tag["name"] for tag in spec.info["tags"]]
    listed = [(area, [op for op in spec.operations if op.raw["tags"][0] == area]) for area in areas]
    sections = [
        f'<h2 id="{area}">{area}</h2><p>{escape(_about(spec, area))}</p>' + "".join(_operation(spec, op) for op in ops)
        for area, ops in listed
        if ops
    ]
    links = "".join(f'<a href="#{op.operation_id}">{op.operation_id}</a>' for _, ops in listed for op in ops)
    frames = _frames(spec, "What a client sends", "client", spec.client_frames)
    frames += _frames(spec, "What the server sends", "server", spec.server_frames)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: the contract</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{title}</h1><p>{_prose(str(spec.info['description']))}</p>"
        '<p>As data, for signed-in callers: <a href="/openapi.json">/openapi.json</a>, '
        '<a href="/asyncapi.json">/asyncapi.json</a>.</p>'
        f'<nav aria-label="Operations">{links}<a href="#ws">WebSocket</a><a href="#entities">Entities</a></nav>'
        f'{"".join(sections)}<h2 id="ws">WebSocket /ws</h2>{frames}{_entities(spec)}</body></html>\n'
    )


def _about(spec: Spec, area: str) -> str:
    return next(str(tag["description"]) for tag in spec.info["tags"] if tag["name"] == area)


def _operation(spec: Spec, op: Operation) -> str:
    parts = [f'<article id="{op.operation_id}"><h3><span class="method">{op.method}</span> {escape(op.path)}</h3>']
    parts.append(f"<p>{_prose(op.raw['summary'])} {_prose(op.raw.get('description', ''))}</p>")
    parts.append(f'<p><span class="tag">{op.operation_id}</span><span class="tag">auth: {op.nerve["auth"]}</span></p>')
    if op.raw["parameters"]:
        rows = "".join(
            f"<tr><td><code>{escape(p['name'])}</code></td><td>{p['in']}</td><td>{escape(_type(p['schema']))}</td>"
            f"<td>{_prose(p.get('description', ''))}</td></tr>"
            for p in op.raw["parameters"]
        )
        parts.append(f"<table>{rows}</table>")
    if "requestBody" in op.raw:
        content = op.raw["requestBody"]["content"]
        parts.append("<h4>Request</h4>" + _example(content) + _fields(spec, content))
    for status, response in op.raw["responses"].items():
        content = response["content"]
        parts.append(f"<h4>{status}</h4><p>{_prose(response['description'])}</p>")
        parts.append(_example(content) + _fields(spec, content))
    rows = "".join(
        f"<tr><td>{spec.errors[name]['status']}</td><td><code>{name}</code></td><td>{kind}</td>"
        f"<td>{escape(str(spec.errors[name]['message']))}</td></tr>"
        for name, kind in sorted(op.errors.items(), key=lambda item: (spec.errors[item[0]]["status"], item[0]))
    )
    parts.append(f"<details><summary>Errors</summary><table>{rows}</table></details></article>")
    return "".join(parts)


def _prose(text: str) -> str:
    """Escaped, in one line, with `code` marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split()), quote=False))


def _fields(spec: Spec, content: dict[str, Any]) -> str:
    media = next(iter(content.values()))
    return _table(spec, media["schema"]) if "schema" in media else ""


def _table(spec: Spec, schema: dict[str, Any]) -> str:
    """The fields of an object, each with its type and meaning; alternatives one below the other."""
    if "$ref" in schema:
        return f"<p>{_named(schema)}</p>"
    if "oneOf" in schema:
        return "".join(_table(spec, option) for option in schema["oneOf"])
    if "properties" not in schema:
        return ""
    required = set(schema.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_named(field)}</td>"
        f"<td>{'always' if name in required else 'may be left out'}</td>"
        f"<td>{_prose(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<table>{rows}</table>"


def _named(schema: dict[str, Any]) -> str:
    """The type of a field in words; an entity links to its own table."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#entity.{name}">{name}</a>'
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "oneOf" in schema or "anyOf" in schema:
        return " | ".join(_named(option) for option in schema.get("oneOf") or schema["anyOf"])
    kinds = schema.get("type", "any")
    text = " | ".join(kinds) if isinstance(kinds, list) else str(kinds)
    if schema.get("format") == "date-time":
        text = text.replace("string", "instant")
    return f"{text} of {_named(schema['items'])}" if "items" in schema else text


def _entities(spec: Spec) -> str:
    parts = ['<h2 id="entities">Entities</h2>']
    for name, schema in spec.schemas.items():
        values = "" if "properties" in schema else f"<p>{_named(schema)}</p>"
        parts.append(
            f'<article id="entity.{name}"><h3>{name}</h3><p>{_prose(schema.get("description", ""))}</p>'
            f"{values}{_table(spec, schema)}</article>"
        )
    return "".join(parts)


def _type(schema: dict[str, Any]) -> str:
    text = str(schema.get("type", ""))
    for key, word in (("minimum", "from"), ("maximum", "to"), ("default", "default")):
        if key in schema:
            text += f", {word} {schema[key]}"
    return text


def _example(content: dict[str, Any]) -> str:
    media_type, media = next(iter(content.items()))
    if "example" not in media:
        return f"<p><code>{escape(media_type)}</code></p>"
    return f"<pre>{escape(json.dumps(media['example'], indent=2, ensure_ascii=False))}</pre>"


def _frames(spec: Spec, title: str, side: str, frames: dict[str, dict[str, Any]]) -> str:
    parts = [f"<h3>{title}</h3>"]
    for name, frame in frames.items():
        nerve = frame["x-nerve"]
        tags = [f"part {nerve['part']}", *(["logged, carries seq"] if nerve.get("logged") else [])]
        tags += [f"to: {nerve['audience']}"] if "audience" in nerve else []
        marks = "".join(f'<span class="tag">{escape(tag)}</span>' for tag in tags)
        examples = "".join(
            f"<pre>{escape(json.dumps(example['payload'], ensure_ascii=False))}</pre>" for example in frame["examples"]
        )
        parts.append(
            f'<article id="{side}.{name}"><h3>{name}</h3><p>{_prose(frame["summary"])} '
            f"{_prose(frame.get('description', ''))}</p><p>{marks}</p>{examples}"
            f"{_table(spec, frame_payload(frame))}</article>"
        )
    return "".join(parts)
