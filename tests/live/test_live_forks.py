"""Forks over real sockets: each remembers exactly its part, also when the server was killed before its first turn."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from nerve.client import ClientSocket, NerveClient, open_client, open_socket
from nerve.contract.generated.frames_client import ForkFrame
from nerve.contract.generated.frames_server import ServerFrame, SessionForkedFrame, TokenFrame
from tests.live.instance import Instance

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
RECALL = "#!nerve-scenario\n- say: '${history}'"
UNNAMED = "#!nerve-scenario\n- say: two\n- unmapped: true"


@contextmanager
def patience() -> Iterator[None]:
    with trio.fail_after(PATIENCE_SECONDS):
        yield


def line(text: str) -> str:
    return " ".join(text.splitlines())


async def said(live: ClientSocket, session_id: str, content: str) -> str:
    frames: list[ServerFrame] = [frame async for frame in await live.turn(session_id, content)]
    return "".join(frame.content for frame in frames if isinstance(frame, TokenFrame))


async def remembered(instance: Instance, token: str, session_id: str) -> list[str]:
    async with open_socket(instance.address, token, session_id=session_id) as live:
        *before, question = (await said(live, session_id, RECALL)).split("\n")
    assert question == line(RECALL)
    return list(before)


async def shown(client: NerveClient, session_id: str) -> list[str]:
    return [line(row.content) for row in (await client.messages(session_id)).messages if row.role == "user"]


async def forked_over_the_socket(live: ClientSocket, source: str, at: str | None) -> str:
    anchor = {} if at is None else {"at_message_id": at}
    await live.send(ForkFrame(session_id=source, **anchor))
    while not isinstance(frame := await live.receive(), SessionForkedFrame):
        pass
    assert frame.source_id == source
    return frame.fork_id


@pytest.mark.req("SESS-54", "SESS-55", "WS-19", "WS-55", "GEN-10")
async def test_a_fork_that_waits_for_its_first_turn_outlives_the_server(instance: Instance) -> None:
    child = instance.foreground()
    token = instance.claim()
    with patience():
        async with open_client(instance.address, token=token) as client:
            source = (await client.create_session()).id
            async with open_socket(instance.address, token, session_id=source) as live:
                for words in ("apple", "banana", UNNAMED):
                    await said(live, source, words)
                rows = (await client.messages(source)).messages
                # At a question, at an answer, whole although the runtime has no name for its end, and a fork of a fork.
                forks = [
                    await forked_over_the_socket(live, source, f"msg-{rows[0].id}"),
                    await forked_over_the_socket(live, source, str(rows[3].id)),
                    (await client.fork_session(source)).id,
                ]
                await said(live, source, "cherry")
            await remembered(instance, token, forks[1])
            forks.append((await client.fork_session(forks[1])).id)
            shows = [await shown(client, each) for each in (*forks, source)]
        child.kill()
        await trio.to_thread.run_sync(child.wait)
    instance.foreground()
    with patience():
        for each, shows_now in zip((*forks, source), shows, strict=True):
            assert await remembered(instance, token, each) == shows_now
    apple, banana, unnamed, asked = "apple", "banana", line(UNNAMED), line(RECALL)
    assert shows == [
        [apple],
        [apple, banana, asked],
        [apple, banana, unnamed],
        [apple, banana, asked],
        [apple, banana, unnamed, "cherry"],
    ]
