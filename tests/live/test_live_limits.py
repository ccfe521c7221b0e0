"""Bounds of the configuration that only the real server can keep (decisions D17)."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.live.instance import Instance

REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def answered(address: str) -> tuple[socket.socket, bytes]:
    """A connection that stays open, and what it was answered."""
    where = urlsplit(address)
    line = socket.create_connection((where.hostname, where.port), timeout=60)
    line.sendall(REQUEST)
    return line, line.recv(65536)


@pytest.mark.slow
def test_more_connections_than_configured_are_turned_away(instance: Instance) -> None:
    instance.home.mkdir(parents=True, exist_ok=True)
    (instance.home / "config.yaml").write_text("gateway: {max_connections: 3}\n")
    instance.foreground()
    kept = [answered(instance.address) for _ in range(3)]
    assert all(reply.startswith(b"HTTP/1.1 200") for _, reply in kept)
    line, reply = answered(instance.address)
    assert reply.startswith(b"HTTP/1.1 503")
    line.close()
    kept[0][0].close()
    for _ in range(100):
        line, reply = answered(instance.address)
        line.close()
        if reply.startswith(b"HTTP/1.1 200"):
            break
    assert reply.startswith(b"HTTP/1.1 200")
    for line, _ in kept[1:]:
        line.close()
