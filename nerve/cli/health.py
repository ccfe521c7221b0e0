"""Asking a daemon on this machine whether it answers."""

import contextlib
import http.client
import json
import ssl
from urllib.parse import urlsplit

_SECONDS = 2.0
_ANSWER_MAX_BYTES = 4096
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def generation_at(address: str) -> str | None:
    """The generation that ``/health`` at this address tells, or None if nothing of ours answers there."""
    url = urlsplit(address)
    host = _WILDCARDS.get(url.hostname or "", url.hostname or "")
    connection = (
        http.client.HTTPSConnection(host, url.port, timeout=_SECONDS, context=_own_certificate())
        if url.scheme == "https"
        else http.client.HTTPConnection(host, url.port, timeout=_SECONDS)
    )
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/health")
            answer = connection.getresponse()
            found = json.loads(answer.read(_ANSWER_MAX_BYTES)) if answer.status == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            return None
    generation = found.get("generation") if isinstance(found, dict) else None
    return generation if isinstance(generation, str) else None


def _own_certificate() -> ssl.SSLContext:
    """Unchecked: the daemon is on this machine, and its certificate names it as others know it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
