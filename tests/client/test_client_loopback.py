"""The client against a real server over loopback, also over a line that is cut."""

import re
from datetime import timedelta
from itertools import pairwise

import pytest
import trio

from nerve.client import (
    ApiError,
    Backoff,
    CaughtUp,
    Disconnected,
    LiveSession,
    SocketEnded,
    TurnRefused,
    Unreachable,
    open_client,
    open_socket,
)
from nerve.client.plain import PlainClient
from nerve.client.plain import open_client as open_plain_client
from nerve.contract.generated.entities import MessageRole
from nerve.contract.generated.errors import ErrorCode
from nerve.contract.generated.frames_server import (
    DoneFrame,
    ErrorFrame,
    InteractionFrame,
    SessionForkedFrame,
    SessionResumedFrame,
    StoppedFrame,
    TokenFrame,
)
from nerve.contract.generated.routes import ROUTES
from nerve.contract.route import NoBody, NoParams, ReplyKind
from nerve.effects import Effects
from nerve.identity.tokens import mint_session
from tests.live.instance import Instance
from tools.line import line_to

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
QUICK = Backoff(first=0.05, longest=0.2)
WORDS = " ".join(f"w{number}" for number in range(12))
QUESTIONS = 5
QUIZ = "#!nerve-scenario" + f"\n- say: {WORDS}\n  pace: 0.02\n- ask: [{{question: Go on?}}]" * QUESTIONS
WAITING = "#!nerve-scenario\n- say: begun\n- wait: 60"  # until it is stopped


async def until_caught_up(live: LiveSession) -> None:
    async for event in live:
        if isinstance(event, CaughtUp):
            return


# --- calls --------------------------------------------------------------------------------------------------------


def test_signing_in_by_password_and_who_that_is(instance: Instance, token: str) -> None:
    with open_plain_client(instance.address) as client:
        with pytest.raises(ApiError) as refused:
            client.login("wrong")
        assert (refused.value.status, refused.value.code) == (401, ErrorCode.BAD_CREDENTIALS)
        client.login("correct horse")
        account = client.me().account
        assert account is not None
        assert account.username == "owner"
        client.auth_check()
        assert [actor.username for actor in client.actors() if actor.username] == ["owner"]


def test_a_session_from_its_making_to_its_end(client: PlainClient) -> None:
    made = client.create_session("A title")
    assert client.session(made.id).title == "A title"
    assert client.update_session(made.id, title="Another", starred=True).starred
    assert made.id in {row.id for row in client.sessions().sessions}
    assert client.chat("#!nerve-scenario\n- say: Hello.", made.id).response == "Hello."
    page = client.messages(made.id)
    assert [(row.role, row.content) for row in page.messages][-1] == (MessageRole.ASSISTANT, "Hello.")
    assert client.messages(made.id, 1, before_id=page.messages[-1].id).messages == page.messages[:1]
    assert client.session_status(made.id).last_seq >= 3
    assert {"created", "started"} <= {event.event_type for event in client.events(made.id)}
    assert client.archive_session(made.id).archived_ids == [made.id]
    assert made.id in {row.id for row in client.archived_sessions().sessions}
    client.unarchive_session(made.id)
    client.delete_session(made.id)
    with pytest.raises(ApiError) as gone:
        client.session(made.id)
    assert gone.value.code is ErrorCode.SESSION_NOT_FOUND


def test_a_fork_has_its_part_and_a_session_is_resumed(client: PlainClient) -> None:
    source = client.create_session("A title").id
    for word in ("one", "two"):
        client.chat(f"#!nerve-scenario\n- say: {word}", source)
    first_answer = client.messages(source).messages[1]
    fork = client.fork_session(source, at_message_id=first_answer.id, title="Only one")
    assert (fork.title, fork.parent_session_id, fork.forked_from_message) == ("Only one", source, first_answer.id)
    assert [row.content for row in client.messages(fork.id).messages][1:] == ["one"]
    with pytest.raises(ApiError) as unknown:
        client.fork_session(source, at_message_id=10**9)
    assert unknown.value.code is ErrorCode.MESSAGE_NOT_FOUND
    client.archive_session(source)
    assert client.resume_session(source).archived_at is None
    with pytest.raises(ApiError) as fresh:
        client.resume_session(client.create_session().id)
    assert fresh.value.code is ErrorCode.NOT_RESUMABLE


def test_a_fork_and_a_resume_over_the_socket(client: PlainClient) -> None:
    source = client.create_session("A title").id
    client.chat("#!nerve-scenario\n- say: one", source)
    with client.follow(source) as live:
        live.fork(at_message_id="1000000000")
        assert (
            next(event.error for event in live if isinstance(event, ErrorFrame)) == "The session has no such message."
        )
        live.fork(title="Whole")
        made = next(event for event in live if isinstance(event, SessionForkedFrame))
        assert (made.source_id, made.title) == (source, "Whole")
        assert client.session(made.fork_id).parent_session_id == source
        client.archive_session(source)
        live.resume()
        assert next(event.session_id for event in live if isinstance(event, SessionResumedFrame)) == source
        assert client.session(source).archived_at is None


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.params is NoParams and route.body is NoBody and route.method == "GET"],
    ids=lambda route: route.operation_id,
)
def test_every_operation_that_needs_nothing_answers(client: PlainClient, route) -> None:  # type: ignore[no-untyped-def]
    if route.kind is not ReplyKind.EVENT_STREAM:
        assert client.call(route) is not None


@pytest.mark.req("AUTH-11", "AUTH-12", "AUTH-13")
def test_a_replaced_token_is_taken_over(instance: Instance, token: str) -> None:
    """A session token past its half comes back renewed; made here as the server makes them."""
    with open_plain_client(instance.address, token) as client:
        account = client.me().account
        assert account is not None
        secret = (instance.home / "jwt_secret").read_text().strip().encode()
        old = mint_session(secret, account.id, Effects().now() - timedelta(hours=20), 30)
        client.token = old
        client.me()
        assert client.token not in (None, old)
        renewed = client.token
        client.me()
        assert client.token == renewed


def test_nobody_is_there() -> None:
    with open_plain_client("http://127.0.0.1:1") as client, pytest.raises(Unreachable, match="can't be reached"):
        client.health()


def test_a_plain_client_that_is_closed_says_so(instance: Instance) -> None:
    with open_plain_client(instance.address) as client:
        client.health()
    with pytest.raises(RuntimeError, match="closed"):
        client.health()


# --- turns --------------------------------------------------------------------------------------------------------


def test_a_plain_program_sees_a_turn_as_it_comes(client: PlainClient) -> None:
    session_id = client.create_session().id
    with client.follow(session_id) as live:
        frames = list(live.turn("#!nerve-scenario\n- say: one two three\n  pace: 0.05"))
        assert "".join(frame.content for frame in frames if isinstance(frame, TokenFrame)) == "one two three"
        assert isinstance(frames[-1], DoneFrame)
        assert live.cursor == frames[-1].seq
        assert live.unconfirmed == ()
        while live.next_within(0.2) is not None:
            pass
    with client.follow(session_id, after_seq=0) as live:
        replay = [live.next_within(5) for _ in range(6)]
        assert any(getattr(frame, "seq", None) == 1 for frame in replay)


def test_a_plain_turn_begins_before_anybody_looks_at_it(client: PlainClient) -> None:
    session_id = client.create_session().id
    with client.follow(session_id) as live:
        live.turn("#!nerve-scenario\n- say: one")
        while not isinstance(event := live.next_within(PATIENCE_SECONDS), DoneFrame):
            assert event is not None


def test_a_turn_is_stopped_and_a_waiting_message_taken_back(client: PlainClient) -> None:
    session_id = client.create_session().id
    with client.follow(session_id) as live:
        turn = live.turn(WAITING)
        assert next(turn) is not None
        waiting = live.send("and then?")
        while not (queue := client.queue(session_id)):
            pass
        assert queue[0].client_msg_id == waiting
        assert client.cancel(session_id, queue[0].queue_id).content == "and then?"
        assert client.stop(session_id).turn.value == "stopped"
        assert isinstance(list(turn)[-1], StoppedFrame)


def test_a_full_queue_refuses_with_its_reason(instance: Instance, client: PlainClient) -> None:
    session_id = client.create_session().id
    with client.follow(session_id) as live:
        live.send("#!nerve-scenario\n- wait: 30")
        for _ in range(50):
            live.send("waits")
        with pytest.raises(TurnRefused, match="Too many messages wait"):
            list(live.turn("one too many"))
    client.archive_session(session_id, force=True)


# --- a line that is cut -------------------------------------------------------------------------------------------


async def test_a_turn_over_a_line_that_is_cut_again_and_again_is_whole(instance: Instance, token: str) -> None:
    """Now and then in the middle of its words, and wherever it asks: there it waits until somebody has come back."""
    with line_to(instance.address) as line, trio.fail_after(PATIENCE_SECONDS):
        async with open_client(line.address, token) as client:
            session_id = (await client.create_session()).id
            async with client.follow(session_id, backoff=QUICK) as live:
                frames = []
                async for frame in live.turn(QUIZ):
                    frames.append(frame)
                    if isinstance(frame, InteractionFrame):
                        line.cut()
                        live.answer(frame.interaction_id, {"answers": {"Go on?": "yes"}})
                    elif len(frames) % 20 == 0:
                        line.cut()
            stored = (await client.messages(session_id)).messages[-1].content
    assert line.connections > QUESTIONS
    assert "".join(frame.content for frame in frames if isinstance(frame, TokenFrame)) == WORDS * QUESTIONS == stored
    numbers = [frame.seq for frame in frames if isinstance(getattr(frame, "seq", None), int)]  # type: ignore[union-attr]
    assert all(before < after for before, after in pairwise(numbers))  # type: ignore[operator]


async def test_a_message_sent_into_a_dead_line_runs_once(instance: Instance, token: str) -> None:
    with line_to(instance.address) as line, trio.fail_after(PATIENCE_SECONDS):
        async with open_client(line.address, token) as client, open_client(instance.address, token) as beside:
            session_id = (await client.create_session()).id
            async with client.follow(session_id, backoff=QUICK) as live:
                await until_caught_up(live)
                line.cut(and_keep_down=True)
                live.send("#!nerve-scenario\n- say: once")
                lost = [event async for event in first_losses(live)]
                assert all(isinstance(event, Disconnected) for event in lost)
                line.mend()
                await until_caught_up(live)
                while live.unconfirmed:
                    await anext(live)
                # Cut again right behind the acknowledgement: nothing is sent any more.
                line.cut()
                await until_caught_up(live)
                if (await beside.session_status(session_id)).is_running:
                    while not isinstance(await anext(live), DoneFrame):
                        pass
            said = (await beside.messages(session_id)).messages
    assert [row.role for row in said] == [MessageRole.USER, MessageRole.ASSISTANT]


async def first_losses(live: LiveSession):  # type: ignore[no-untyped-def]
    for _ in range(3):
        yield await anext(live)


async def test_a_server_that_is_restarted_goes_on_where_it_was(instance: Instance, token: str) -> None:
    """In the middle of a turn: it is interrupted, and what waits behind it runs afterwards."""
    with trio.fail_after(PATIENCE_SECONDS):
        with line_to(instance.address) as line:
            async with open_client(line.address, token) as client:
                session_id = (await client.create_session()).id
                async with client.follow(session_id, backoff=QUICK) as live:
                    # Long enough for the slowest machine: a restart in the middle of it is what this is about.
                    turn = live.turn(WAITING.replace("60", "3000"))
                    assert await anext(turn) is not None
                    before = (await client.health()).generation
                    port = re.search(r":(\d+)$", instance.address)
                    assert port is not None
                    await trio.to_thread.run_sync(instance.must, "stop")
                    await trio.to_thread.run_sync(instance.foreground, "--port", port[1])
                    frames = [frame async for frame in turn]
                    assert (await client.health()).generation != before
                    again = [frame async for frame in live.turn("#!nerve-scenario\n- say: here again")]
    assert frames[-1].type == "error"
    assert isinstance(again[-1], DoneFrame)


async def test_a_refused_upgrade_tells_the_servers_reason() -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        body = b'{"detail":"This server does not answer for the host."}'
        head = f"HTTP/1.1 421 Misdirected\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        await stream.send_all(head.encode() + body)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, refuse, 0)
        port = listeners[0].socket.getsockname()[1]
        with trio.fail_after(20), pytest.raises(SocketEnded, match="HTTP 421, This server does not answer"):
            async with open_socket(f"http://127.0.0.1:{port}", "x"):
                pass
        nursery.cancel_scope.cancel()


@pytest.mark.req("WS-04")
async def test_a_token_of_nobody_ends_it_for_good(instance: Instance, token: str) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_client(instance.address, "nobody") as client, client.follow("main") as live:
            with pytest.raises(SocketEnded) as ended:
                await anext(live)
    assert ended.value.code == 4001
    assert ended.value.final


async def test_a_socket_over_nothing_says_so() -> None:
    with pytest.raises(SocketEnded, match="can't be reached"):
        async with open_socket("http://127.0.0.1:1", "x"):
            pass


async def test_a_server_that_is_none_breaks_the_protocol() -> None:
    async def answer(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"220 mail.example ESMTP\r\n")
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, answer, 0)
        port = listeners[0].socket.getsockname()[1]
        with trio.fail_after(20), pytest.raises(SocketEnded, match="broke off"):
            async with open_socket(f"http://127.0.0.1:{port}", "x"):
                pass
        nursery.cancel_scope.cancel()
