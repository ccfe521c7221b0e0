"""``kill -9`` at random moments of streaming, queued and tool-using turns; the server comes back each time.

No acknowledged message is lost (gaps.md 6), none runs twice, every record is settled, no number of the event log is
used twice, and at most the last quarter second of text is missing.
"""

import random
from collections import Counter
from collections.abc import Callable

import pytest
import trio
from attrs import define, field

from tests.soak import plays, records
from tests.soak.daemon import Daemon
from tests.soak.quarantine import LoopBreaker
from tests.soak.records import Records, Turn
from tests.soak.scale import amount
from tests.soak.speaking import Speaker
from tests.soak.witness import Witness

KILLS = amount(sample=3, whole=50)
SESSIONS = 4
LONGEST_LIFE = 1.6
LOST_SECONDS = 0.25
DRAIN_SECONDS = 120.0
INTERRUPTED = "[Interrupted by restart]"


@define(eq=False)
class Trial:
    """The whole of it: one home, its speakers, and what must be true after every start."""

    daemon: Daemon
    rng: random.Random
    speakers: dict[str, Speaker]
    breaker: LoopBreaker = field(factory=LoopBreaker)
    known: set[str] = field(factory=set)  # turns that were settled before
    killed_at: float = 0.0
    interrupted: int = 0
    quarantines: int = 0
    oldest_loss: float = 0.0  # seconds before a kill

    async def life(self, seconds: float) -> None:
        """Everybody follows and sends; after ``seconds`` the server is killed, and everybody notices."""
        busy = {session_id for session_id in self.speakers if self.rng.random() < 0.7}
        async with trio.open_nursery() as nursery:
            for session_id, speaker in self.speakers.items():
                nursery.start_soon(speaker.follow)
                nursery.start_soon(speaker.speak, session_id in busy)
            await trio.sleep(seconds)
            self.killed_at = trio.current_time()
            self.daemon.kill()

    async def come_back(self) -> None:
        """Start again, now and then killed once more before anybody is served; then look at everything."""
        died = 0
        while self.rng.random() < 0.15:
            await trio.to_thread.run_sync(self.daemon.spawn)
            await trio.sleep(self.rng.uniform(0, 1.0))
            self.daemon.kill()
            died += 1
        await trio.to_thread.run_sync(self.daemon.start)
        self.check()
        for session_id in sorted(self.breaker.set_aside):
            await self._look_at_quarantine(session_id)

    # --- what must be true ----------------------------------------------------------------------------------------

    def check(self) -> None:
        records.check_sound(self.daemon.database)
        before = {s: plays.lines(self.daemon.workspace, s) for s in self.speakers}
        now = records.read(self.daemon.database)
        after = {s: plays.lines(self.daemon.workspace, s) for s in self.speakers}
        now.check()
        self._check_acknowledged(now)
        self._check_markers(now, before, after)
        fresh = [turn for turn in now.settled() if turn.id not in self.known and turn.session_id in self.speakers]
        cut_off = [turn for turn in fresh if turn.state == "interrupted"]
        for turn in cut_off:
            self._check_partial(turn)
        self.known |= {turn.id for turn in fresh}
        self.interrupted += len(cut_off)
        self.breaker.restarted(now)

    def _check_acknowledged(self, now: Records) -> None:
        for session_id, speaker in self.speakers.items():
            assert not speaker.witness.refused, speaker.witness.refused
            accepted = [turn.client_msg_id for turn in now.turns if turn.session_id == session_id]
            accepted += now.waiting.get(session_id, [])
            lost = speaker.witness.acknowledged - set(accepted)
            assert not lost, f"acknowledged and lost: {lost}"
            assert accepted == list(speaker.sent)[: len(accepted)], "not in the order of sending"

    def _check_markers(self, now: Records, before: dict[str, Counter[str]], after: dict[str, Counter[str]]) -> None:
        begun = {turn.client_msg_id for turn in now.turns}
        for session_id in self.speakers:
            earlier, later = before[session_id], after[session_id]
            twice = [line for line, count in later.items() if count > 1]
            assert not twice, f"played twice: {twice}"
            assert earlier.keys() <= begun, f"played without a turn: {earlier.keys() - begun}"
            for turn in now.turns:
                if turn.session_id == session_id and turn.state == "completed":
                    assert turn.client_msg_id in later, f"completed without its effect: {turn}"

    def _check_partial(self, turn: Turn) -> None:
        """What was on the screen a quarter of a second before the kill is in the stored answer."""
        assert turn.answer is not None
        assert turn.answer.endswith(INTERRUPTED), turn
        stored = turn.answer.removesuffix(INTERRUPTED).removesuffix("\n\n")
        witness = self.speakers[turn.session_id].witness
        seen = witness.text_of_turn(turn.first_seq)
        assert seen.startswith(stored) or stored.startswith(seen), (stored, seen)
        due = witness.text_of_turn(turn.first_seq, self.killed_at - LOST_SECONDS)
        assert stored.startswith(due), f"seen {LOST_SECONDS} s before the kill and lost: {due[len(stored) :]!r}"
        self.oldest_loss = max(self.oldest_loss, self._age_of_loss(witness, turn.first_seq, stored))

    def _age_of_loss(self, witness: Witness, first_seq: int, stored: str) -> float:
        instants = sorted(at for seq, at in witness.seen_at.items() if seq > first_seq)
        lost = [at for at in instants if not stored.startswith(witness.text_of_turn(first_seq, at))]
        return self.killed_at - lost[0] if lost else 0.0

    async def _look_at_quarantine(self, session_id: str) -> None:
        """The queue is kept and visible, nothing runs; a stop lifts it (decisions D8)."""
        self.quarantines += 1
        get = self.daemon.get
        _, session = await trio.to_thread.run_sync(get, f"/api/sessions/{session_id}")
        assert (session["quarantined"], session["status"]) == (True, "error")
        _, status = await trio.to_thread.run_sync(get, f"/api/sessions/{session_id}/status")
        assert status["is_running"] is False
        _, queue = await trio.to_thread.run_sync(get, f"/api/sessions/{session_id}/queue")
        waiting = records.read(self.daemon.database).waiting.get(session_id, [])
        assert [entry["client_msg_id"] for entry in queue["items"]] == waiting
        _, events = await trio.to_thread.run_sync(get, f"/api/sessions/{session_id}/events")
        assert "quarantined" in [event["event_type"] for event in events["events"]]
        if self.rng.random() < 0.7:
            await self.lift(session_id)

    async def lift(self, session_id: str) -> None:
        status, answer = await trio.to_thread.run_sync(self.daemon.post, f"/api/sessions/{session_id}/stop")
        assert status == 200, answer
        self.breaker.lifted(session_id)

    # --- the end --------------------------------------------------------------------------------------------------

    async def run_dry(self) -> None:
        """The last life: what nobody acknowledged is sent once more, and everything runs to its end."""
        for session_id in sorted(self.breaker.set_aside):
            await self.lift(session_id)
        with trio.fail_after(DRAIN_SECONDS):
            async with trio.open_nursery() as nursery:
                for speaker in self.speakers.values():
                    nursery.start_soon(speaker.follow)
                    nursery.start_soon(speaker.speak, False)
                for speaker in self.speakers.values():
                    await speaker.all_ended()
                await trio.to_thread.run_sync(self._check_history)
                self.daemon.terminate()
        assert self.daemon.wait(10) == 0, self.daemon.log_tail()

    def _check_history(self) -> None:
        """The front door's view: each message once, in order, each with its answer."""
        for session_id, speaker in self.speakers.items():
            _, page = self.daemon.get(f"/api/sessions/{session_id}/messages?limit=1000")
            rows = page["messages"]
            assert [row["role"] for row in rows] == ["user", "assistant"] * len(speaker.sent)
            assert [row["content"] for row in rows[::2]] == list(speaker.sent.values())
            assert speaker.witness.begun() == list(speaker.sent)
            speaker.witness.check_turns()
            answers = dict(zip(speaker.sent, (row["content"] for row in rows[1::2]), strict=True))
            for message_id, said in speaker.answered.items():
                assert answers[message_id] == said
            for message_id, answer in answers.items():
                assert answer.endswith((f"{message_id} ends.", INTERRUPTED)), answer


def _open_trial(daemon: Daemon, rng: random.Random) -> Trial:
    speakers = {}
    for number in range(SESSIONS):
        _, session = daemon.post("/api/sessions")
        session_id = session["id"]
        plays.prepare(daemon.workspace, session_id)
        own = random.Random(rng.random())
        speakers[session_id] = Speaker(daemon, Witness(session_id), own, over_rest=number == SESSIONS - 1)
    return Trial(daemon, rng, speakers)


@pytest.mark.soak
@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_or_runs_twice(
    daemon: Daemon, rng: random.Random, say: Callable[[str], None]
) -> None:
    trial = await trio.to_thread.run_sync(_open_trial, daemon, rng)
    for _ in range(KILLS):
        await trial.life(rng.uniform(0.05, LONGEST_LIFE))
        await trial.come_back()
    await trial.run_dry()
    records.check_sound(daemon.database)
    final = records.read(daemon.database)
    final.check()
    assert not final.waiting
    assert all(turn.state in ("completed", "interrupted") for turn in final.turns)
    say(
        f"{KILLS} kills: {sum(len(s.sent) for s in trial.speakers.values())} messages, {trial.interrupted} turns "
        f"interrupted, {trial.quarantines} looks at quarantined sessions, "
        f"{sum(len(s.witness.gaps) for s in trial.speakers.values())} gaps, "
        f"oldest text lost {trial.oldest_loss * 1000:.0f} ms before a kill"
    )
