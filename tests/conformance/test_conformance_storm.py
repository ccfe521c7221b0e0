"""Several people do everything at once, in an order that a seed decides; nothing is lost, doubled or stuck by it."""

import random
from collections import Counter
from typing import Any

import pytest
import trio
from attrs import define, field

from tests.conformance.conftest import local
from tests.conformance.scenarios_frames import talking
from tests.conformance.subject import Local, SocketTalk, Subject, new_person, new_session, script
from tests.soak.scale import amount
from tests.spec_client import Answer, SpecClient

PEOPLE, DEEDS, SESSIONS = 3, 40, 4
QUIET_SECONDS = 600
ENDS = {"done", "stopped", "error"}
PLAYS = (
    ("say: hello",),
    ("think: hm", "say: one two three", "usage: {input_tokens: 3, output_tokens: 2, cost_usd: 0.5}"),
    ("{tool: Bash, input: {command: ls}, output: [a, b], seconds: 1, result: ab}", "say: done"),
    ("{write: a.txt, content: x}", "{edit: a.txt, old: x, new: y}", "{delete: a.txt}"),
    ("{say: on and on and on, pace: 1}",),
    ("wait: 3",),
    ("stuck: 2", "say: free again"),
    ("stuck: 60",),
    ("{model: smaller, downgrade: true}", "say: smaller"),
    ("say: so far", "fail: The model is overloaded."),
    ("say: so far", "crash: true"),
    ("say: so far", "crash: silent"),
    ("nonsense: 1",),
)


@define(eq=False)
class Storm:
    subject: Subject
    rng: random.Random
    sessions: list[str] = field(factory=list)
    weather: tuple[str, ...] = ()  # how the store may refuse for a while
    accepted: list[tuple[str, str]] = field(factory=list)  # session and client_msg_id that a REST call ran

    def session(self) -> str:
        return self.rng.choice(self.sessions)

    async def change_weather(self) -> None:
        """The store refuses everything now and then."""
        while self.weather:
            await trio.sleep(self.rng.uniform(0.1, 4))
            self.subject.faults.refuse_writes(self.rng.choice(self.weather))
            await trio.sleep(self.rng.uniform(0.01, 1.5))
            self.subject.faults.accept_writes()

    def play(self) -> str:
        return script(*self.rng.choice(PLAYS)) if self.rng.random() < 0.8 else "Just words."


@define(eq=False)
class Person:
    storm: Storm
    client: SpecClient
    talk: SocketTalk

    async def live(self) -> None:
        deeds = [self.say] * 6 + [self.chat] * 3 + [self.stop, self.stop_by_socket, self.cancel, self.switch] * 2
        deeds += [self.archive, self.unarchive, self.change, self.read, self.create, self.delete, self.repeat]
        for _ in range(DEEDS):
            await self.storm.rng.choice(deeds)()
            await trio.sleep(self.storm.rng.choice((0, 0, 0, 0.01, 0.3, 2)))

    async def call(self, operation_id: str, json: Any = ..., **path: str) -> Answer:
        options = {"path": path} if path else {}
        answer = await self.client.call(operation_id, json, **options)
        assert answer.documented is not None
        assert answer.status < 500 or answer.code == "chat_failed" or answer.code in self.storm.weather
        return answer

    async def say(self) -> None:
        words = {"session_id": self.storm.session(), "content": self.storm.play()}
        await self.talk.socket.send_json({"type": "message", "client_msg_id": self.storm.subject.unique("m-"), **words})

    async def repeat(self) -> None:
        """The same message three times over."""
        words = {"session_id": self.storm.session(), "content": self.storm.play()}
        client_msg_id = self.storm.subject.unique("m-")
        for _ in range(3):
            await self.talk.socket.send_json({"type": "message", "client_msg_id": client_msg_id, **words})

    async def chat(self) -> None:
        session_id, client_msg_id = self.storm.session(), self.storm.subject.unique("m-")
        body = {"message": self.storm.play(), "session_id": session_id, "client_msg_id": client_msg_id}
        if (await self.call("chat.send", body)).code == "":
            self.storm.accepted.append((session_id, client_msg_id))

    async def stop(self) -> None:
        await self.call(
            "sessions.stop", {"scope": self.storm.rng.choice(("turn", "all", "force"))}, session_id=self.storm.session()
        )

    async def stop_by_socket(self) -> None:
        await self.talk.socket.send_json({"type": "stop", "session_id": self.storm.session()})

    async def cancel(self) -> None:
        session_id = self.storm.session()
        listed = await self.call("queue.list", session_id=session_id)
        if listed.code == "" and listed.json["items"]:
            entry = self.storm.rng.choice(listed.json["items"])
            await self.call("queue.cancel", session_id=session_id, queue_id=entry["queue_id"])

    async def switch(self) -> None:
        after = self.storm.rng.choice((None, 0, 3, 10**6))
        await self.talk.socket.send_json(
            {"type": "switch_session", "session_id": self.storm.session(), "after_seq": after}
        )

    async def archive(self) -> None:
        session_id, force = self.storm.session(), self.storm.rng.choice(("true", "false"))
        await self.client.call("sessions.archive", path={"session_id": session_id}, query={"force": force})

    async def unarchive(self) -> None:
        await self.call("sessions.unarchive", session_id=self.storm.session())

    async def change(self) -> None:
        change = self.storm.rng.choice(
            ({"title": "x"}, {"starred": True}, {"model": "m"}, {"parent_session_id": self.storm.session()})
        )
        await self.call("sessions.update", change, session_id=self.storm.session())

    async def read(self) -> None:
        for operation_id in ("sessions.get", "sessions.status", "sessions.messages", "sessions.events", "queue.list"):
            await self.call(operation_id, session_id=self.storm.session())
        for operation_id in ("sessions.list", "sessions.archived", "sessions.system"):
            await self.call(operation_id)

    async def create(self) -> None:
        created = await self.call("sessions.create", {})
        if created.code == "":
            self.storm.sessions.append(created.json["id"])

    async def delete(self) -> None:
        if len(self.storm.sessions) > SESSIONS:
            await self.call("sessions.delete", session_id=self.storm.session())

    async def keep_reading(self, task_status: trio.TaskStatus[None]) -> None:
        """The referee of the socket sees every frame."""
        task_status.started()
        while True:
            await self.talk.socket.receive_json(within=10 * QUIET_SECONDS)


@local(Local.CLOCK)
@pytest.mark.slow
@pytest.mark.req("GEN-11", "WS-09")
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(amount(2, 30)))
async def test_a_storm_leaves_everything_in_order(seed: int, subject: Subject) -> None:
    await weather(Storm(subject, random.Random(seed)))


@local(Local.FAULTS)
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(amount(2, 30)))
async def test_a_storm_over_a_failing_disk_leaves_everything_in_order(seed: int, subject: Subject) -> None:
    await weather(Storm(subject, random.Random(seed), weather=("store_full", "store_busy")))


async def weather(storm: Storm) -> None:
    subject = storm.subject
    storm.sessions = [await new_session(subject.owner) for _ in range(SESSIONS)]
    async with trio.open_nursery() as nursery, subject.owner.connect() as witness:
        running = Running()
        await nursery.start(running.watch, witness)
        clients = [(await new_person(subject))[0] for _ in range(PEOPLE)]
        async with trio.open_nursery() as clouds:
            clouds.start_soon(storm.change_weather)
            async with trio.open_nursery() as people:
                for client in clients:
                    people.start_soon(_in_person, storm, client)
            clouds.cancel_scope.cancel()
        if storm.weather:
            subject.faults.accept_writes()
        await _quiet(subject)
        await witness.send_json({"type": "ping"})
        await running.caught_up.wait()
        nursery.cancel_scope.cancel()
    assert running.turns
    assert not running.odd
    assert not any(running.turns.values())
    for session_id in await _all_sessions(subject):
        await _in_order(storm, session_id)


async def _in_person(storm: Storm, client: SpecClient) -> None:
    client = client.with_(patience=QUIET_SECONDS)
    async with client.connect() as socket, trio.open_nursery() as nursery:
        person = Person(storm, client, SocketTalk(socket, "main"))
        await nursery.start(person.keep_reading)
        await person.live()
        nursery.cancel_scope.cancel()


@define(eq=False)
class Running:
    """Each session as a witness at the side hears of it: turns begin and end in turn."""

    turns: dict[str, bool] = field(factory=dict)
    odd: list[dict[str, Any]] = field(factory=list)
    caught_up: trio.Event = field(factory=trio.Event)

    async def watch(self, socket: Any, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        while True:
            frame = await socket.receive_json(within=10 * QUIET_SECONDS)
            if frame["type"] == "pong":
                self.caught_up.set()
            if frame["type"] == "session_running":
                before = self.turns.get(frame["session_id"], False)
                if frame["is_running"] and before:
                    self.odd.append(frame)
                self.turns[frame["session_id"]] = frame["is_running"]


async def _all_sessions(subject: Subject) -> list[str]:
    found: list[str] = []
    for operation_id in ("sessions.list", "sessions.archived", "sessions.system"):
        offset = 0
        while True:
            page = await subject.owner.ok(operation_id, query={"offset": offset})
            found += [row["id"] for row in page["sessions"]]
            if not page["has_more"]:
                break
            offset = page["next_offset"]
    assert len(found) == len(set(found))
    return found


async def _quiet(subject: Subject) -> None:
    """Nothing runs and nothing waits any more, within a bounded time."""
    with trio.fail_after(QUIET_SECONDS):
        while not await _is_quiet(subject):  # noqa: ASYNC110 - a client has no event for it either
            await trio.sleep(5)


async def _is_quiet(subject: Subject) -> bool:
    for session_id in await _all_sessions(subject):
        path = {"session_id": session_id}
        if (await subject.owner.ok("sessions.status", path=path))["is_running"]:
            return False
        if (await subject.owner.ok("queue.list", path=path))["items"]:
            return False
    return True


async def _in_order(storm: Storm, session_id: str) -> None:
    """The history and the log tell the same story: each turn once, from its message to its end."""
    path = {"session_id": session_id}
    page = await storm.subject.owner.ok("sessions.messages", path=path, query={"limit": 1000})
    roles = [message["role"] for message in page["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    row = await storm.subject.owner.ok("sessions.get", path=path)
    assert row["message_count"] == len(roles)
    async with talking(storm.subject, session_id=session_id, after_seq=0) as talk:
        await talk.socket.send_json({"type": "ping"})
        frames = (await talk.socket.receive_until("pong"))[:-1]
    numbered = [frame for frame in frames if "seq" in frame]
    begun = [frame["client_msg_id"] for frame in numbered if frame["type"] == "user_message"]
    assert len(begun) == len(roles) // 2
    assert [id for id, times in Counter(begun).items() if times > 1] == []
    assert sum(frame["type"] in ENDS for frame in numbered) == len(begun)
    _each_turn_whole(numbered)
    ran = [client_msg_id for where, client_msg_id in storm.accepted if where == session_id]
    assert set(ran) <= set(begun)


def _each_turn_whole(numbered: list[dict[str, Any]]) -> None:
    inside, open_tools = False, set()
    for frame in numbered:
        match frame["type"]:
            case "user_message":
                assert not inside
                inside = True
            case "tool_use":
                open_tools.add(frame["tool_use_id"])
            case "tool_result":
                open_tools.remove(frame["tool_use_id"])
            case kind if kind in ENDS:
                assert inside
                assert not open_tools
                inside = False
        assert inside or frame["type"] in ENDS
    assert not inside
