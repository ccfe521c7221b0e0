"""Ports for servers that cannot say themselves which one they took."""

import random
import socket

# Below what systems give to whoever asks for any port, and to outgoing connections: nobody gets it in the meantime.
_LOWEST, _HIGHEST = 20_000, 31_999
_chance = random.SystemRandom()


def free_port() -> int:
    """One of 127.0.0.1 that is free now."""
    while True:
        port = _chance.randint(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
