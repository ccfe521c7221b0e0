"""The WebSocket shell: who may open one, who it is, and one close at its end."""

import logging
from collections.abc import Callable
from http import HTTPStatus

from attrs import evolve

from nerve.asgi.access import log_access
from nerve.asgi.gate import Gate
from nerve.asgi.head import RequestHead, read_head
from nerve.asgi.policy import Admission, HttpPolicy, SocketServer
from nerve.asgi.protocol import GONE, PROGRESS, Receive, Scope, Send
from nerve.asgi.replies import HttpReply, error_reply
from nerve.asgi.socket import Socket
from nerve.contract.route import AuthMode
from nerve.errors import ErrorCode, NerveError, sole_error

_logger = logging.getLogger("nerve.asgi")

PATH = b"/ws"
_NORMAL, _INTERNAL, _TRY_AGAIN, _UNAUTHENTICATED = 1000, 1011, 1013, 4001
# A browser would see of a refused handshake only that it failed, so these are told after it (the WebSocket chapter).
_CLOSE_CODES = {ErrorCode.UNAUTHENTICATED: _UNAUTHENTICATED, ErrorCode.IDENTITY_NOT_READY: _TRY_AGAIN}


class WebSocketShell:
    def __init__(
        self,
        gate: Gate,
        admission: Admission,
        sockets: SocketServer,
        policy: HttpPolicy,
        new_request_id: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._gate = gate
        self._admission = admission
        self._sockets = sockets
        self._external = policy.auth_mode is AuthMode.EXTERNAL
        self._on_undeclared = policy.on_undeclared
        self._new_request_id = new_request_id
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its request to its end."""
        started = self._clock()
        head = read_head(scope, self._gate.proxies, self._new_request_id)
        if (await receive())["type"] != "websocket.connect":
            return
        actor_id: str | None = None
        try:
            self._gate.check_host(head)
            if head.path != PATH:
                raise NerveError(ErrorCode.NOT_FOUND)
            self._gate.check_origin(head)
        except NerveError as error:
            reply = error_reply(error)
            status = reply.status
            reply.headers.append((b"x-request-id", head.request_id.encode("ascii")))
            await _refuse(scope, send, reply)
        else:
            socket = Socket(receive, send, (scope.get("extensions") or {}).get(PROGRESS))
            actor_id = await self._converse(head, socket)
            status = socket.code or _NORMAL
        elapsed = self._clock() - started
        log_access(head, method="WEBSOCKET", status=status, seconds=elapsed, size=0, actor_id=actor_id)

    async def _converse(self, head: RequestHead, socket: Socket) -> str | None:
        """Admit, accept, serve, close.  The actor's id, if there is one."""
        actor_id: str | None = None
        code = _NORMAL
        try:
            caller = await self._admission.admit(head.credentials(external=self._external))
            caller = evolve(caller, peer=head.peer, request_id=head.request_id)
            actor_id = caller.actor_id
            await socket.accept()
            await self._sockets.serve(caller, head.query, socket)
        except Exception as exc:  # noqa: BLE001 - the socket barrier
            code = self._code_of(exc, admitted=socket.was_accepted)
        await socket.accept()
        await socket.close(code, _REASONS.get(code, ""))
        return actor_id

    def _code_of(self, exc: Exception, *, admitted: bool) -> int:
        error = None if admitted else sole_error(exc)
        if error is not None and error.code in _CLOSE_CODES:
            return _CLOSE_CODES[error.code]
        _logger.error("a socket failed", exc_info=exc)
        self._on_undeclared("ws", exc)
        return _INTERNAL


_REASONS = {
    _INTERNAL: "internal error",
    _TRY_AGAIN: "authentication is not ready",
    _UNAUTHENTICATED: "not authenticated",
}


async def _refuse(scope: Scope, send: Send, reply: HttpReply) -> None:
    """Before the handshake: an HTTP reply where the server can send one, else its own bare refusal."""
    try:
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008, "reason": HTTPStatus(reply.status).phrase})
            return
        headers = [*reply.headers, (b"content-length", str(len(reply.content)).encode("ascii"))]
        await send({"type": "websocket.http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": reply.content})
    except GONE:
        return
