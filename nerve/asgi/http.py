"""The HTTP shell: one request from its bytes to its reply, deciding in the documented order.

Host (421), route (404), method (405), credential (401, 503), policy (403), size (413), type (415), body (422), handler.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic

import trio
from attrs import define, evolve, field

from nerve.asgi.access import log_access
from nerve.asgi.body import RequestBody, decode, read_body
from nerve.asgi.cors import Cors
from nerve.asgi.files import deliver_file
from nerve.asgi.gate import Gate
from nerve.asgi.head import RequestHead, read_head
from nerve.asgi.policy import Admission, HttpPolicy
from nerve.asgi.protocol import GONE, WATCH, ClientLeft, RawHeaders, Receive, Scope, Send, Watch
from nerve.asgi.replies import HttpReply, error_reply, options_reply, reply_of
from nerve.asgi.router import Resource, Router
from nerve.contract.caller import NOBODY, Caller
from nerve.contract.generated.errors import ErrorKind
from nerve.contract.route import AuthMode, AuthPolicy, Endpoint, EventStream, Route, S, Work
from nerve.errors import ErrorCode, NerveError, sole_error

_logger = logging.getLogger("nerve.asgi")

STALL_SECONDS = 10.0  # a reader of a stream that takes nothing for so long is gone (decisions D18)
_LEFT = 499  # what the access log shows for a client that did not wait for its reply
_BEFORE_ROUTING = frozenset({ErrorCode.WRONG_HOST, ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED})


@define(eq=False)
class Exchange:
    """One request on its way to a reply."""

    head: RequestHead
    body: RequestBody
    route: Route[Any, Any, Any] | None = None
    caller: Caller = field(default=NOBODY)
    watch: Watch | None = None


class HttpShell(Generic[S]):
    def __init__(
        self,
        router: Router[S],
        services: S,
        gate: Gate,
        admission: Admission,
        policy: HttpPolicy,
        new_request_id: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._router = router
        self._services = services
        self._gate = gate
        self._cors = Cors(gate.origins)
        self._admission = admission
        self._policy = policy
        self._external = policy.auth_mode is AuthMode.EXTERNAL
        self._new_request_id = new_request_id
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.  Cancelled, it leaves the request unanswered."""
        started = self._clock()
        head = read_head(scope, self._gate.proxies, self._new_request_id)
        http1 = str(scope.get("http_version", "1.1")).startswith("1")
        body = RequestBody(receive, head.headers, http1=http1, limit=self._policy.max_body_bytes)
        exchange = Exchange(head, body, watch=(scope.get("extensions") or {}).get(WATCH))
        try:
            reply = await self._answer(exchange)
            status, size = reply.status, await self._deliver(exchange, reply, send)
        except ClientLeft:
            status, size = _LEFT, 0
        elapsed, actor_id = self._clock() - started, exchange.caller.actor_id
        log_access(head, method=head.method, status=status, seconds=elapsed, size=size, actor_id=actor_id)

    # --- deciding -------------------------------------------------------------------------------------------------

    async def _answer(self, exchange: Exchange) -> HttpReply:
        """The reply, whatever happens.  Raises ClientLeft."""
        try:
            return await self._decide_or_tell(exchange)
        except ClientLeft:
            raise
        except Exception as exc:  # the request barrier
            route = exchange.route
            name = "a request" if route is None else route.operation_id
            _logger.error("%s failed (request %s)", name, exchange.head.request_id, exc_info=exc)
            self._policy.on_undeclared(name, exc)
            kind = None if route is None else route.errors.get(ErrorCode.INTERNAL)
            return error_reply(NerveError(ErrorCode.INTERNAL), kind)

    async def _decide_or_tell(self, exchange: Exchange) -> HttpReply:
        """Turns the errors that the operation declares into their bodies; lets every other exception out."""
        try:
            return await self._decide(exchange)
        except (NerveError, ExceptionGroup) as exc:
            error = sole_error(exc)
            if error is None:
                raise
            route = exchange.route
            declared: ErrorKind | None = None
            if route is not None and error.code in route.errors:
                declared = route.errors[error.code]
            elif error.code not in _BEFORE_ROUTING or route is not None:
                raise
            return error_reply(error, declared)

    async def _decide(self, exchange: Exchange) -> HttpReply:
        head = exchange.head
        found = self._router.find(head.path)
        if found is None or not found[0].any_host:
            self._gate.check_host(head)
        if found is None:
            raise NerveError(ErrorCode.NOT_FOUND)
        resource, values = found
        operation = resource.operation(head.method)
        if operation is None:
            return self._options(head, resource)
        endpoint = operation.endpoint
        route = exchange.route = endpoint.route
        caller = exchange.caller = await self._admit(route, head)
        content_type = head.headers.get(b"content-type")
        raw = await read_body(route, exchange.body, content_type, self._policy)
        path, headers = dict(zip(operation.names, values, strict=True)), head.named(route.headers)
        params, body = decode(route, path, head.query, headers, raw)
        reply = reply_of(route, await self._run(endpoint, exchange, params, body))
        if caller.refreshed is not None and 200 <= reply.status < 300:
            reply.headers.append((b"x-nerve-token", caller.refreshed.encode("ascii")))
        return reply

    def _options(self, head: RequestHead, resource: Resource[S]) -> HttpReply:
        if head.method != "OPTIONS":
            raise NerveError(ErrorCode.METHOD_NOT_ALLOWED, allow=resource.allow)
        return options_reply(resource.allow, self._cors.preflight(head, resource.allow))

    async def _admit(self, route: Route[Any, Any, Any], head: RequestHead) -> Caller:
        """Who calls, and whether they may.  Raises NerveError."""
        if route.auth is AuthPolicy.OPEN:
            return evolve(NOBODY, peer=head.peer, request_id=head.request_id)
        credentials = head.credentials(external=self._external)
        caller = await self._admission.admit(credentials)
        if route.auth is AuthPolicy.PERSON and not caller.is_person:
            raise NerveError(route.refusal)
        if route.work is Work.WRITE and credentials.ambient:
            self._gate.check_origin(head)
        return evolve(caller, peer=head.peer, request_id=head.request_id)

    async def _run(self, endpoint: Endpoint[S], exchange: Exchange, params: Any, body: Any) -> Any:
        """The handler's result.  A write runs to its end; anything else ends with ClientLeft when its client leaves."""
        if endpoint.route.work is Work.WRITE:
            return await endpoint.handler(self._services, exchange.caller, params, body)
        if exchange.watch is not None and exchange.body.finished:
            async with exchange.watch():
                return await endpoint.handler(self._services, exchange.caller, params, body)
            raise ClientLeft  # the only way out of the block that is no return
        result, left = None, True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_left, exchange.body, nursery.cancel_scope)
            result = await endpoint.handler(self._services, exchange.caller, params, body)
            left = False
            nursery.cancel_scope.cancel()
        if left:
            raise ClientLeft
        return result

    # --- delivering -----------------------------------------------------------------------------------------------

    async def _deliver(self, exchange: Exchange, reply: HttpReply, send: Send) -> int:
        """Send the reply; the number of body bytes sent.  Raises ClientLeft."""
        head, body = exchange.head, exchange.body
        keep = body.finished or await body.settle()
        headers = [*reply.headers, (b"x-request-id", head.request_id.encode("ascii")), *self._cors.headers(head)]
        if not keep and body.http1:
            headers.append((b"connection", b"close"))
        if reply.stream is not None:
            return await self._deliver_stream(exchange, reply.status, headers, reply.stream, send)
        if reply.file is not None:
            return await deliver_file(reply.status, headers, reply.file, send, head_only=head.method == "HEAD")
        if reply.status != 204:
            headers.append((b"content-length", b"%d" % len(reply.content)))
        content = b"" if head.method == "HEAD" else reply.content
        try:
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await send({"type": "http.response.body", "body": content, "more_body": not keep})
            if not keep:
                await body.linger()
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except GONE:
            raise ClientLeft from None
        return len(content)

    async def _deliver_stream(
        self, exchange: Exchange, status: int, headers: RawHeaders, stream: EventStream, send: Send
    ) -> int:
        """Send pieces as they come, until the stream ends, its client leaves or takes nothing for too long."""
        sent = 0

        async def piece(data: bytes) -> None:
            nonlocal sent
            with trio.fail_after(STALL_SECONDS):
                await send({"type": "http.response.body", "body": data, "more_body": True})
            sent += len(data)

        try:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            if exchange.head.method != "HEAD":
                await piece(b"")  # the head waits for the first piece, which may be long in coming
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_cancel_when_left, exchange.body, nursery.cancel_scope)
                    await stream.run(piece)
                    nursery.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except GONE:
            raise ClientLeft from None
        except ExceptionGroup as group:
            if group.split((*GONE, trio.TooSlowError))[1] is not None:
                raise
            raise ClientLeft from None
        return sent


async def _cancel_when_left(body: RequestBody, scope: trio.CancelScope) -> None:
    await body.until_left()
    scope.cancel()
