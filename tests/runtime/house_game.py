"""People who do anything with the sessions of one home, over its lives: creates, messages, answers, stops, ends."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import trio
from attrs import define, field

from tests.asgi_client import Closed
from tests.runtime.house_clients import Client
from tests.runtime.mortal_home import Home, Life
from tests.runtime.tabs import Frame, tab
from tests.sessions.session_house import House, play

PLAYS = {
    "talk": ("- say: 'a b c d '", "  pace: 0.05"),
    "tool": ("- say: 'well '", "- tool: Bash", "  output: [x]", "  seconds: 0.3", "- say: so"),
    "ask": ("- say: 'hm '", "- ask: [{question: Which colour?, header: colour}]", "- say: '${answer.colour}'"),
    "form": ("- form: {questions: [{id: a, kind: text, label: A, question: q}]}", "- say: '${form.a}'"),
    "plan": ("- plan: one", "  revise: [{say: 'so '}, {plan: two}]", "- say: over"),
    "approve": ("- approve: command", "- approve: file", "- say: over"),
    "long": ("- say: 'begun '", "- wait: 20", "- say: over"),
    "recall": ("- say: '${history}'",),
    "fail": ("- say: 'oh '", "- fail: no"),
    "crash": ("- think: hm", "- crash: true"),
}
GOOD: dict[str, list[Any]] = {
    "question": [{"answers": {"colour": " Blue "}}, {"answers": {}}],
    "form": [{"answers": {"a": "x"}}, {"answers": {"nothing": "x"}}],
    "plan_exit": [None, {"plan": "three"}],
}
TABS = 3
LATE = 2.0  # seconds, longer than anything takes that nobody waits for
MESSAGES = "SELECT id, role, content, thinking, blocks FROM messages WHERE session_id = ? ORDER BY id"
Action = tuple[Any, ...]


@define(eq=False)
class Game:
    """What the clients have done, and the home's present life."""

    home: Home
    then: Callable[["Game"], Awaitable[None]]  # when all is settled
    clients: list[Client] = field(factory=lambda: [Client() for _ in range(TABS)])
    sessions: list[str] = field(factory=lambda: ["main"])
    sent: list[tuple[int, str, str]] = field(factory=list)  # client, session, client_msg_id
    copied: dict[str, list[Any]] = field(factory=dict)  # what each fork began with
    refused: bool = False  # by a shutdown, which empties the queues
    emptied: bool = False  # a queue, by an archive
    house: House = field(init=False)
    _life: Life = field(init=False)
    _sockets: AsyncExitStack = field(init=False)
    _requests: trio.Nursery = field(init=False)
    _under_way: int = 0
    _answered: trio.Event = field(factory=trio.Event)
    _last: list[tuple[Client, list[Any]]] = field(factory=list)  # what had come when the process was killed

    async def live(self, actions: Iterable[Action], end: int | str) -> None:
        """One life of the home: whoever was connected comes back with the number they have."""
        async with self.home.life(survived=True) as self._life:
            self.house = self._life.house
            self._life.mortal.last = self._cut
            self.sessions = [each["id"] for each in await self._rows()]
            async with trio.open_nursery() as self._requests, AsyncExitStack() as self._sockets:
                for client in self.clients:
                    if client.bound is not None:
                        await self._connect(client, client.bound, with_number=True)
                for action in actions:
                    await self.act(action)
                await self._end(end)
        for client, frames in self._last:
            for frame in frames:
                if not isinstance(frame, Closed):
                    client.take(frame)
        self._last.clear()
        self._under_way = 0

    async def _end(self, end: int | str) -> None:
        """``end``: the number of writes after which it is killed, or ``shutdown`` or ``settle``."""
        if isinstance(end, int):
            await self._life.kill_within(end, LATE)
            self._requests.cancel_scope.cancel()
            return
        if self._under_way:
            self._answered = trio.Event()
            await self._answered.wait()
        if end == "settle":
            await self.settle()
            await self.then(self)
            return
        await self.house.supervisor.drain()
        self.refused = True
        await trio.sleep(LATE)
        for client in self.clients:
            client.read()
            client.tab = None

    def _cut(self) -> None:
        """The server is no more; its clients have what it has sent."""
        for client in self.clients:
            if client.tab is not None:
                self._last.append((client, client.tab.socket.received()))
                client.tab = None

    async def act(self, action: Action) -> None:
        match action:
            case ("create",):
                self.sessions.append(await self.house.create())
            case ("fork", session, pick):
                await self._fork(self._session(session), pick)
            case ("say", number, session, name):
                await self._say(number, self._session(session), name)
            case ("answer", number, pick, how):
                await self._answer(self.clients[number], pick, how)
            case ("bind", number, session, with_number):
                await self._bind(self.clients[number], self._session(session), with_number=with_number)
            case ("drop", number):
                self.clients[number].drop()
            case ("pause", seconds):
                await trio.sleep(seconds)
            case (what, session, how):
                self._end_something(what, self._session(session), how)
        for client in self.clients:
            client.read()
        await self._busy_only_with_a_turn()

    def _end_something(self, what: str, session_id: str, how: Any) -> None:
        match what:
            case "stop":
                self._request("POST", f"/api/sessions/{session_id}/stop", json={"scope": how})
            case "archive" if session_id != "main":
                self.emptied |= how
                self._request("POST", f"/api/sessions/{session_id}/archive", query={"force": how})
            case "unarchive" | "resume":
                self._request("POST", f"/api/sessions/{session_id}/{what}")
            case "delete" if session_id != "main":
                self.sessions.remove(session_id)
                for client in self.clients:
                    client.asked = {i: frame for i, frame in client.asked.items() if frame["session_id"] != session_id}
                self._request("DELETE", f"/api/sessions/{session_id}")

    def _session(self, number: int) -> str:
        return self.sessions[number % len(self.sessions)]

    def _request(self, method: str, path: str, **how: Any) -> None:
        """Goes on while others do something."""

        async def send() -> None:
            try:
                reply = await self.house.alice.with_(patience=60).request(method, path, **how)
                # It was deleted meanwhile; or it has not run yet, so that there is nothing to resume.
                assert reply.status in (200, 404) or (reply.status, path[-6:]) == (400, "resume"), reply.text
            except Exception:
                if not self._life.mortal.dead:
                    raise
            self._under_way -= 1
            if not self._under_way:
                self._answered.set()

        self._under_way += 1
        self._requests.start_soon(send)

    async def _fork(self, session_id: str, pick: int) -> None:
        """Whole or at one of its messages.  What comes of a message that nobody answered to has no place in it yet."""
        before = await self.house.sql(MESSAGES, session_id)
        anchor = before[pick % len(before)][0] if before and pick % 3 else None
        body = {"source_session_id": session_id, "at_message_id": None if anchor is None else str(anchor)}
        reply = await self.house.alice.post("/api/sessions/fork", json=body)
        assert reply.status in (200, 404, 409), reply.text
        if reply.status == 200:
            fork_id = reply.json["id"]
            copied = [row[1:] for row in await self.house.sql(MESSAGES, fork_id)]
            # Meanwhile more may have been said, or the source deleted.
            source = max(before, await self.house.sql(MESSAGES, session_id), key=len)
            due = [row[1:] for row in source if anchor is None or row[0] <= anchor]
            assert copied == due[: len(copied)]
            assert len(copied) == len(due) or anchor is None
            self.copied[fork_id] = copied
            self.sessions.append(fork_id)

    async def _say(self, number: int, session_id: str, name: str) -> None:
        client = self.clients[number]
        if client.tab is None:
            await self._connect(client, session_id, with_number=False)
        assert client.tab is not None
        client_msg_id = f"c{len(client.own)}-{number}"
        client.own.add(client_msg_id)
        self.sent.append((number, session_id, client_msg_id))
        client.read()
        elsewhere = client.bound != session_id
        await client.tab.say(session_id, play(f"- think: {client_msg_id}", *PLAYS[name]), client_msg_id)
        if elsewhere:
            client.asks_for(session_id, with_number=False)
            await self._until_bound(client)

    async def _answer(self, client: Client, pick: int, how: str) -> None:
        if client.tab is None:
            await self._connect(client, "main", with_number=False)
        assert client.tab is not None
        if not self.waiting():
            await trio.sleep(0.3)
            for each in self.clients:
                each.read()
        if not (waiting := self.waiting()):
            return
        question = waiting[pick % len(waiting)]
        named = {key: question[key] for key in ("session_id", "interaction_id")}
        match how:
            case "good":
                choices = GOOD.get(question["interaction_type"], [{}])
                await client.tab.send("answer_interaction", **named, result=choices[pick % len(choices)])
            case "deny":
                await client.tab.send("answer_interaction", **named, denied=True, message="No.")
            case "bad":
                await client.tab.send("answer_interaction", **named, result={"answers": 5, "plan": 5})

    def waiting(self) -> list[Frame]:
        """What waits, as far as anybody knows; some of it may be settled by now."""
        asked = {i: frame for client in self.clients for i, frame in client.asked.items()}
        return [frame for _, frame in sorted(asked.items())]

    async def _bind(self, client: Client, session_id: str, *, with_number: bool) -> None:
        if client.tab is None:
            await self._connect(client, session_id, with_number=with_number)
            return
        client.read()
        after = client.asks_for(session_id, with_number=with_number)
        await client.tab.send("switch_session", session_id=session_id, after_seq=after)
        await self._until_bound(client)

    async def _until_bound(self, client: Client) -> None:
        """Until it is bound, or told that the session was deleted meanwhile."""
        assert client.tab is not None

        def settled(frame: Frame) -> bool:
            return frame["type"] == "session_status" or frame.get("error") == "session_not_found"

        found = await client.tab.until(settled)
        for frame in found:
            client.take(frame)
        if found[-1]["type"] == "error":
            client.asks_for("main", with_number=False)

    async def _connect(self, client: Client, session_id: str, *, with_number: bool) -> None:
        """As whoever comes in newly, it reads the list of the sessions then."""
        if session_id not in self.sessions:
            session_id, with_number = "main", False
        after = client.asks_for(session_id, with_number=with_number)
        client.tab = await self._sockets.enter_async_context(tab(self.house.alice, session_id, after))
        for frame in client.tab.greeting:
            client.take(frame)
        for row in await self._rows():
            client.running[row["id"]], client.awaiting[row["id"]] = row["is_running"], row["awaiting_input"]

    async def _rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for archived in ("", "/archived"):
            reply = await self.house.alice.get(f"/api/sessions{archived}")
            assert reply.status == 200, reply.text
            found += reply.json["sessions"]
        return found

    async def _busy_only_with_a_turn(self) -> None:
        """Nothing waits between the look at the disk and the look at what lives."""

        def open_turns(db: Any) -> set[str]:
            return {row[0] for row in db.execute("SELECT session_id FROM turns WHERE state = 'running'")}

        found = await self.home.database.read(open_turns)
        for session_id, runner in self.house.supervisor._runners.items():
            assert session_id not in found or runner.live.is_running
            assert not runner.live.is_running or session_id in found or runner._beginning or runner.turn is not None

    async def settle(self) -> None:
        """Everybody comes, all is stopped until nothing waits, and each agent says what it remembers."""
        for client in self.clients:
            if client.tab is None:
                await self._connect(client, "main", with_number=True)
        await self._until_quiet()
        for number, session_id in enumerate(self.sessions):
            await self._say(number % TABS, session_id, "recall")
        await self._until_quiet()
        for session_id in self.sessions:
            for client in self.clients:
                await self._bind(client, session_id, with_number=True)
                await trio.sleep(0.1)
                client.read()
        await trio.sleep(LATE)

    async def _until_quiet(self) -> None:
        await trio.sleep(LATE)
        for _ in range(10 * (len(self.sent) + 1)):
            busy = [s for s in self.sessions if (await self.status(s))["is_running"] or await self._queue(s)]
            if not busy:
                break
            for session_id in busy:
                path = f"/api/sessions/{session_id}/stop"
                await self.house.alice.with_(patience=60).post(path, json={"scope": "turn"})
            await trio.sleep(LATE)

    async def status(self, session_id: str) -> dict[str, Any]:
        return dict((await self.house.alice.get(f"/api/sessions/{session_id}/status")).json)

    async def _queue(self, session_id: str) -> list[Any]:
        return list((await self.house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"])
