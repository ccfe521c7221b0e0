"""Requests as values, made the same way for a server in memory and for one at an address."""

import json as jsonlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from attrs import evolve

from tests.asgi_wire import Request

HeaderItems = Mapping[str, str] | Sequence[tuple[str, str]]
Query = Mapping[str, Any] | Sequence[tuple[str, Any]] | str | bytes


def built_request(
    method: str,
    path: str,
    query: Query,
    headers: Iterable[tuple[str, str]],
    *,
    host: str,
    token: str | None,
    raw_headers: Iterable[tuple[bytes, bytes]] = (),
) -> Request:
    """``path`` may be raw (percent-encoded) or plain text, and may hold a query.

    An empty ``host`` and a ``token`` that is None are not sent; ``headers`` stand in their place where they name them.
    """
    own = [("host", host)] if host else []
    if token is not None:
        own.append(("authorization", f"Bearer {token}"))
    given = [(n.lower().encode("ascii"), v.encode("latin-1")) for n, v in headers]
    replaced = {name for name, _ in given}
    kept = [(n.encode(), v.encode("latin-1")) for n, v in own if n.encode() not in replaced]
    raw, _, inline = path.partition("?")
    return Request(
        method=method,
        path=quote(raw, safe="/%:@!$&'()*+,;=~[]"),
        query=inline.encode() or _encoded(query),
        headers=(*kept, *given, *raw_headers),
    )


def with_query_token(request: Request, token: str) -> Request:
    """The token moved from the header to the query, as browsers have to send it."""
    query = b"&".join(part for part in (request.query, urlencode({"token": token}).encode("ascii")) if part)
    kept = tuple((name, value) for name, value in request.headers if name != b"authorization")
    return evolve(request, query=query, headers=kept)


def header_pairs(headers: HeaderItems) -> list[tuple[str, str]]:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)


def body_parts(
    json: Any, content: bytes | Iterable[bytes] | None, method: str, end_body: bool = True
) -> tuple[list[bytes], list[tuple[str, str]]]:
    """The parts to send, and the headers that describe them."""
    if json is not ...:
        content = jsonlib.dumps(json).encode("utf-8")
    headers = [("content-type", "application/json")] if json is not ... else []
    if content is None and end_body:
        return [b""], [("content-length", "0")] if method in ("POST", "PUT", "PATCH") else []
    if isinstance(content, bytes) and end_body:
        return [content], [*headers, ("content-length", str(len(content)))]
    parts = [content] if isinstance(content, bytes) else list(content or ())
    return [*parts, b""] if end_body else parts, [*headers, ("transfer-encoding", "chunked")]


def _encoded(query: Query) -> bytes:
    if isinstance(query, bytes):
        return query
    return query.encode("utf-8") if isinstance(query, str) else urlencode(query).encode("ascii")
