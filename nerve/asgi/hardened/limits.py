"""What one client may take of the server: bytes, seconds and connections (decisions D17, D18, D26)."""

from attrs import frozen

KIB, MIB = 1024, 1024 * 1024


@frozen(kw_only=True)
class Limits:
    """Seconds and bytes.  The app has bounds of its own for a body; ``body_seconds`` holds for apps that have none."""

    # A request's head
    request_line_bytes: int = 16 * KIB  # the longest path of a file fits, with every byte escaped
    head_bytes: int = 32 * KIB
    header_count: int = 100
    head_seconds: float = 10.0
    # A connection between and within its requests
    tls_seconds: float = 10.0
    idle_seconds: float = 130.0  # longer than proxies keep a line for its next request, which ours would cut off
    body_seconds: float = 600.0
    requests: int = 10_000
    pipelined_bytes: int = 64 * KIB
    # A peer that does not read, and one that still sends when all is said
    stall_seconds: float = 10.0
    reset_seconds: float = 2.0
    linger_seconds: float = 2.0
    linger_bytes: int = 8 * MIB
    # A WebSocket
    message_bytes: int = MIB
    inbox_messages: int = 256
    inbox_bytes: int = 2 * MIB
    ping_seconds: float = 20.0
    missed_pings: int = 2
    close_seconds: float = 2.0
    leave_seconds: float = 10.0  # an app's, once its socket has ended
    # All of them together
    connections: int = 4096
    connections_per_peer: int = 256
