"""Each transcript of spec/ is played against the house, with the plays and the people that it supposes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio
from attrs import define, field, frozen

from tests.conformance.conftest import Opening, local
from tests.conformance.subject import Local, SocketTalk, Start, Subject, new_session
from tests.conformance.transcripts import Cast, Performance
from tests.contract.spec_reader import TRANSCRIPTS

Step = dict[str, Any]
IDLE_SECONDS = 90
DAY_SECONDS = 2 * 3600  # the log of these servers keeps frames for an hour


@frozen
class Staging:
    """What a transcript supposes.

    ``plays`` are scenario files: what the agent does at a prompt.  ``setting`` happens before the first step; each
    action of ``meanwhile`` once, before the first step that fits.
    """

    plays: Mapping[str, str]
    setting: Callable[[Performance], Awaitable[None]]
    meanwhile: tuple[tuple[Callable[[Step], bool], Callable[[Performance], Awaitable[None]]], ...] = ()


@define(eq=False)
class StagedPerformance(Performance):
    staging: Staging = field(kw_only=True)
    _done: set[int] = field(factory=set)

    async def before_step(self, number: int, step: Step) -> None:
        for index, (fits, action) in enumerate(self.staging.meanwhile):
            if index not in self._done and fits(step):
                self._done.add(index)
                await action(self)

    def all_happened(self) -> bool:
        return len(self._done) == len(self.staging.meanwhile)


# --- what happens beside the socket -------------------------------------------------------------------------------


async def a_new_session(performance: Performance) -> None:
    performance.cast.names["a1b2c3d4"] = await new_session(performance.subject.owner)


async def an_idle_main(performance: Performance) -> None:
    """It has run once, and nothing came for so long that its runtime has been closed."""
    await performance.subject.owner.ok("chat.send", {"message": "Good morning.", "session_id": "main"})
    await trio.sleep(IDLE_SECONDS)


async def a_story_begins(performance: Performance) -> None:
    async with performance.subject.owner.connect() as socket:
        talk = SocketTalk(socket, "main")
        await talk.say("Tell a story.")
        await talk.until("token")


async def the_story_goes_on(performance: Performance) -> None:
    await trio.sleep(5)


async def a_day_later(performance: Performance) -> None:
    await trio.sleep(DAY_SECONDS)
    await performance.subject.owner.ok("chat.send", {"message": "How does it end?", "session_id": "main"})


async def one_is_cancelled(performance: Performance) -> None:
    path = {"session_id": "main", "queue_id": performance.cast.names["q_00000002"]}
    await performance.subject.owner.ok("queue.cancel", path=path)


async def the_door_closes(performance: Performance) -> None:
    performance.subject.faults.shut_down()


async def the_house_closes(performance: Performance) -> None:
    await performance.subject.faults.close_down()


def opens(part: str) -> Callable[[Step], bool]:
    return lambda step: part in step.get("open", "")


def says(content: str) -> Callable[[Step], bool]:
    return lambda step: bool(step.get("client", {}).get("content") == content)


def hears(**fields: Any) -> Callable[[Step], bool]:
    return lambda step: fields.items() <= step.get("server", {}).items()


def hears_removal(reason: str) -> Callable[[Step], bool]:
    return lambda step: reason in [left["reason"] for left in step.get("server", {}).get("removed", [])]


STAGINGS: Mapping[str, Staging] = {
    "first_turn": Staging(
        plays={
            r"Do the tests pass\?": """
                - think: Better to run them.
                - say: "I run them. "
                - {tool: Bash, input: {command: pytest -q}, output: ["212 passed\\n"], result: 212 passed}
                - wait: 1
                - say: They do.
                - usage: {input_tokens: 900, output_tokens: 40}
            """
        },
        setting=a_new_session,
    ),
    "stop": Staging(
        plays={
            "Count to a million": """
                - say: "1 2 3 "
                - wait: 1
                - say: "4 5 6 "
                - wait: 30
            """,
            r"And then\?": "- say: Then I rest.",
        },
        setting=an_idle_main,
    ),
    "queue": Staging(
        plays={
            r"Run the tests\.": """
                - say: "Running. "
                - wait: 5
            """,
            "e2e suite": """
                - say: All green.
                - wait: 30
            """,
        },
        setting=an_idle_main,
        meanwhile=(
            (hears_removal("cancelled"), one_is_cancelled),
            (says("thanks"), the_door_closes),
            (hears(error="Interrupted by restart"), the_house_closes),
        ),
    ),
    "interaction": Staging(
        plays={
            "Paint the fence": """
                - ask:
                  - {question: Which colour?, header: colour, options: [{label: Red, description: Warm}, {label: Blue}]}
                - wait: 1
                - plan: Buy paint.
                  revise: [{plan: Fetch the paint.}]
                - say: "${answer.colour} it is."
            """
        },
        setting=a_new_session,
    ),
    "reconnect": Staging(
        plays={
            "Tell a story": """
                - {say: "Once upon a ", pace: 1}
                - wait: 1
                - say: time
                - wait: 8
                - say: .
                - wait: 1
                - say: And so on.
            """,
            "How does it end": "- say: Well.",
        },
        setting=a_story_begins,
        meanwhile=((opens("after_seq=43"), the_story_goes_on), (opens("after_seq=46"), a_day_later)),
    ),
}


def test_every_transcript_is_staged() -> None:
    assert STAGINGS.keys() == TRANSCRIPTS.keys()


@local(Local.FAULTS)
@pytest.mark.slow
@pytest.mark.req("WS-21", "WS-22", "WS-24", "WS-41", "WS-43", "WS-44", "WS-45")
@pytest.mark.parametrize("name", TRANSCRIPTS)
async def test_transcript_happens(name: str, opening: Opening) -> None:
    staging = STAGINGS[name]
    settings = {"sessions": "client_idle_timeout_minutes: 1, event_log_hours: 1"}
    async with opening(Start.CLAIMED, settings) as subject:
        stage(subject, staging)
        performance = StagedPerformance(subject, staging=staging)
        await staging.setting(performance)
        await performance.run(TRANSCRIPTS[name])
        assert performance.all_happened()


def stage(subject: Subject, staging: Staging) -> None:
    for number, (prompt, steps) in enumerate(staging.plays.items()):
        subject.faults.write_scenario(f"{number}.yaml", f"match: '{prompt}'\nsteps:\n{steps}\n")


def test_a_transcript_is_told_from_another_one() -> None:
    cast = Cast()
    cast.check({"seq": 7, "queue_id": "q_1"}, {"seq": 70, "queue_id": "q_x"})
    cast.check({"seq": 9, "queue_id": "q_1"}, {"seq": 71, "queue_id": "q_x"})
    for wanted, found in (
        ({"seq": 8}, {"seq": 71}),
        ({"seq": 10}, {"seq": 69}),
        ({"queue_id": "q_1"}, {"queue_id": "q_y"}),
        ({"queue_id": "q_2"}, {"queue_id": "q_x"}),
        ({"queue_id": None}, {"queue_id": "q_x"}),
        ({"content": "a"}, {"content": "b"}),
        ({"removed": []}, {}),
        ({"created_at": "2026-02-27T02:00:00.000Z"}, {"created_at": "2026-02-27 02:00"}),
    ):
        with pytest.raises(AssertionError):
            Cast(dict(cast.names), dict(cast.numbers)).check(wanted, found)
