"""Several clients do anything in any order; whatever they do, the promises of the queue and of the log hold."""

import tempfile
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.store.inline import open_inline
from tests.asgi_client import Closed
from tests.runtime.lagging import LaggingDatabase
from tests.runtime.tabs import Frame, Tab, tab
from tests.sessions.session_house import House, open_house, play

PLAYS = {
    "talk": ("- say: 'a b c d '", "  pace: 0.05"),
    "tool": ("- say: 'well '", "- tool: Bash", "  output: [x]", "  seconds: 0.3", "- say: so"),
    "long": ("- say: 'begun '", "- wait: 20", "- say: over"),
    "deaf": ("- say: 'begun '", "- stuck: 20", "- say: over"),
    "fail": ("- say: 'oh '", "- fail: no"),
    "crash": ("- think: hm", "- crash: true"),
    "gone": ("- say: 'bye '", "- crash: silent"),
}
TABS = 3
REST = "rest"
Action = tuple[Any, ...]
_tab = st.integers(0, TABS - 1)
_pick = st.integers(0, 30)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), _tab | st.just(REST), st.sampled_from(sorted(PLAYS))),
        st.tuples(st.just("again"), _tab | st.just(REST), _pick),
        st.tuples(st.just("cancel"), _pick),
        st.tuples(st.just("stop"), _tab | st.just(REST), st.sampled_from(["turn", "force"])),
        st.tuples(st.just("switch"), _tab, st.sampled_from(["away", "back", "return"])),
        st.tuples(st.just("drop"), _tab),
        st.tuples(st.just("connect"), _tab, st.booleans()),
        st.tuples(st.just("pause"), st.sampled_from([0.0, 0.001, 0.02, 0.3, 2.0])),
    ),
    min_size=1,
    max_size=30,
)


@define(eq=False)
class Client:
    """One browser tab and what it knows of the session: the last number it has, over all its sockets."""

    session_id: str
    cursor: int = 0
    tab: Tab | None = None
    bound: bool = False
    returning: bool = False  # with its last number, so that nothing may be left out
    asked: int = 0
    seen: dict[int, Frame] = field(factory=dict)
    skipped: list[int] = field(factory=list)  # numbers that went by without a gap
    acknowledged: set[str] = field(factory=set)

    def take(self, frame: Frame) -> None:
        if frame["type"] == "session_switched":
            self.bound = frame["session_id"] == self.session_id
            if self.bound and self.returning:
                self.cursor = self.asked  # what came after it on the old binding comes again
        elif frame.get("session_id") != self.session_id:
            assert "seq" not in frame
        elif frame["type"] == "session_status":
            self._status(frame)
        elif frame["type"] == "gap":
            raise AssertionError("nothing was lost here")
        elif frame["type"] == "queue_update":
            named = [*frame["queue"], *frame.get("removed", [])]
            self.acknowledged |= {entry["client_msg_id"] for entry in named}
        elif "seq" in frame:
            self._numbered(frame)

    def _status(self, frame: Frame) -> None:
        events = frame.get("buffered_events")
        assert events is None or not self.returning
        if events is not None:
            self.cursor = events[0]["seq"] - 1
            for event in events:
                assert event["seq"] == self.cursor + 1
                self._numbered(event)
            assert self.cursor == frame["last_seq"]
        elif not self.returning:
            self.cursor = frame["last_seq"]
        self.returning = False

    def _numbered(self, frame: Frame) -> None:
        assert self.bound
        seq = frame["seq"]
        assert seq > self.cursor, "a number came twice or out of order"
        self.skipped += range(self.cursor + 1, seq)
        assert self.seen.setdefault(seq, frame) == frame
        self.cursor = seq

    def read(self) -> None:
        if self.tab is not None:
            for frame in self.tab.socket.received():
                assert not isinstance(frame, Closed)
                self.take(frame)


@define(eq=False)
class Play:
    """The clients of one house, and what they have done."""

    house: House
    session_id: str
    other: str
    sockets: AsyncExitStack
    nursery: trio.Nursery
    clients: list[Client] = field(init=False)
    sent: list[tuple[str, str]] = field(factory=list)
    replies: dict[str, int] = field(factory=dict)
    cancelled: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.clients = [Client(self.session_id) for _ in range(TABS)]

    async def act(self, action: Action) -> None:
        match action:
            case ("send", where, name):
                client_msg_id = f"c{len(self.sent)}"
                self.sent.append((client_msg_id, play(f"- think: {client_msg_id}", *PLAYS[name])))
                await self._say(where, *self.sent[-1])
            case ("again", where, number) if self.sent:
                await self._say(where, *self.sent[number % len(self.sent)])
            case ("cancel", number):
                await self._cancel(number)
            case ("stop", where, scope):
                await self._stop(where, scope)
            case ("switch", number, where):
                await self._switch(self.clients[number], where)
            case ("drop", number):
                self._drop(self.clients[number])
            case ("connect", number, with_number):
                await self._connect(self.clients[number], with_number)
            case ("pause", seconds):
                await trio.sleep(seconds)
        for client in self.clients:
            client.read()

    async def _say(self, where: int | str, client_msg_id: str, content: str) -> None:
        client = None if where == REST else self.clients[int(where)]
        if client is not None and client.tab is not None and client.bound:
            await client.tab.say(self.session_id, content, client_msg_id)
        else:
            self.nursery.start_soon(self._chat, client_msg_id, content)

    async def _chat(self, client_msg_id: str, content: str) -> None:
        body = {"message": content, "session_id": self.session_id, "client_msg_id": client_msg_id}
        reply = await self.house.alice.with_(patience=3600).post("/api/chat", json=body)
        self.replies[client_msg_id] = reply.status

    async def _cancel(self, number: int) -> None:
        items = (await self.house.alice.get(f"/api/sessions/{self.session_id}/queue")).json["items"]
        if items:
            entry = items[number % len(items)]
            reply = await self.house.alice.delete(f"/api/sessions/{self.session_id}/queue/{entry['queue_id']}")
            if reply.status == 200:
                self.cancelled.add(entry["client_msg_id"])

    async def _stop(self, where: int | str, scope: str) -> None:
        client = None if where == REST else self.clients[int(where)]
        if client is not None and client.tab is not None:
            await client.tab.send("stop", session_id=self.session_id)
        else:
            path = f"/api/sessions/{self.session_id}/stop"
            answer = await self.house.alice.with_(patience=60).post(path, json={"scope": scope})
            assert answer.json["turn"] in ("stopped", "killed", "not_running")

    async def _switch(self, client: Client, where: str) -> None:
        if client.tab is None:
            return
        client.read()
        if where == "away":
            await client.tab.send("switch_session", session_id=self.other)
        elif where == "back":
            await client.tab.send("switch_session", session_id=self.session_id)
        else:
            client.returning, client.asked = True, client.cursor
            await client.tab.send("switch_session", session_id=self.session_id, after_seq=client.cursor)
        # A client that has said so hears nothing of before: what is under way is read first.
        await self._settled(client)

    async def _settled(self, client: Client) -> None:
        assert client.tab is not None
        found = await client.tab.until("session_status")
        before, status = found[:-1], found[-1]
        for frame in [*before, status]:
            client.take(frame)

    def _drop(self, client: Client) -> None:
        if client.tab is not None:
            client.read()
            client.tab.socket.disconnect()
            client.tab, client.bound = None, False

    async def _connect(self, client: Client, with_number: bool) -> None:
        if client.tab is None:
            client.returning, client.asked = with_number, client.cursor
            after = client.cursor if with_number else None
            client.tab = await self.sockets.enter_async_context(tab(self.house.alice, self.session_id, after))
            for frame in client.tab.greeting:
                client.take(frame)


async def play_all(house: House, actions: list[Action]) -> None:
    session_id, other = await house.create(), await house.create()
    async with trio.open_nursery() as nursery, AsyncExitStack() as sockets:
        whole = Play(house, session_id, other, sockets, nursery)
        for client in whole.clients[:2]:
            await whole._connect(client, True)
        for action in actions:
            await whole.act(action)
        await trio.sleep(25 * (len(whole.sent) + 1))
        for client in whole.clients:
            await whole._connect(client, True)
            if not client.bound:
                await whole._switch(client, "return")
        await trio.sleep(1)
        await whole.act(("pause", 0.0))
        await check(house, whole)
        await house.supervisor.drain()
        await trio.sleep(60)
        assert not house.supervisor.live(session_id).is_running


async def check(house: House, whole: Play) -> None:
    ran = [client_msg_id for (client_msg_id,) in await house.sql("SELECT client_msg_id FROM turns ORDER BY first_seq")]
    assert len(ran) == len(set(ran)) or whole.cancelled, "a message ran twice"
    assert await house.sql("SELECT count(*) FROM queue_entries") == [(0,)]
    users = await house.sql("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    for client_msg_id, content in whole.sent:
        # A cancelled id is forgotten, so that a repetition of it may run after all.
        times = users.count((content,))
        assert times == ran.count(client_msg_id) <= 1
        acknowledged = whole.replies.get(client_msg_id) == 200 or any(
            client_msg_id in client.acknowledged for client in whole.clients
        )
        assert times == 1 or client_msg_id in whole.cancelled or not acknowledged
    answers = await house.sql("SELECT count(*) FROM messages WHERE role = 'assistant'")
    turns = await house.sql("SELECT count(*) FROM turns WHERE state <> 'running' AND assistant_message_id IS NOT NULL")
    assert len(ran) == len(users) == answers[0][0] == turns[0][0]
    times = await house.sql("SELECT started_at, ended_at FROM turns ORDER BY first_seq")
    assert all(before[1] <= after[0] for before, after in pairwise(times)), "two turns at a time"
    await _check_logs(house, whole)


async def _check_logs(house: House, whole: Play) -> None:
    rows = await house.sql("SELECT seq, frame FROM frames WHERE session_id = ? ORDER BY seq", whole.session_id)
    stored = {seq: orjson.loads(frame) for seq, frame in rows}
    assert list(stored) == list(range(1, len(stored) + 1))
    for client in whole.clients:
        assert client.cursor == len(stored) or client.cursor == len(stored) - 1
        assert all(stored[seq] == frame for seq, frame in client.seen.items())
        # What it was not told of while it was bound are its own messages alone.
        assert {stored[seq]["type"] for seq in client.skipped} <= {"user_message"}


@pytest.mark.slow
@settings(max_examples=60)
@given(ACTIONS)
def test_whatever_clients_do(actions: list[Action]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory, open_inline() as database:
            async with open_house(LaggingDatabase(database), Path(directory) / "home") as house:
                await play_all(house, actions)

    trio.run(main, clock=MockClock(autojump_threshold=0))
