"""A person is asked: told to everybody, and answered once by anybody."""

import pytest
import trio

from nerve.errors import ErrorCode, NerveError
from nerve.store import interactions
from tests.runtime.asking import ASK, BLUE, PLAN, answer, ask, asked, awaiting, pending
from tests.runtime.tabs import of, tab, text, types
from tests.sessions.session_house import House, play, system_session


@pytest.mark.req("WS-21", "WS-67", "WS-70", "WS-71", "WS-75")
async def test_a_question_is_answered_from_another_tab(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob, session_id) as other, tab(house.bob) as far:
        question = await ask(one, session_id)
        tool = of(one.frames, "tool_use")[-1]
        assert question["interaction_type"] == "question"
        assert question["tool_name"] == tool["tool"] == "AskUserQuestion"
        assert question["tool_input"] == tool["input"]
        assert question["agent"] is None
        assert question["seq"] == tool["seq"] + 1
        assert await asked(other) == question
        assert (await far.until("session_awaiting_input"))[-1]["awaiting"] is True
        assert await awaiting(house, session_id) == [True, True]
        await answer(other, question, {"answers": {"colour": " Blue "}})
        rest = await one.turn()
        told = of(rest, "interaction_resolved", "tool_result", "token", "done")
        assert types(told) == ["interaction_resolved", "tool_result", "token", "done"]
        result = told[1]
        assert (result["tool_use_id"], result["is_error"]) == (tool["tool_use_id"], False)
        assert result["result"] == "The person answered.\ncolour: Blue"
        assert text(rest) == "So Blue; The person answered.\ncolour: Blue."
        assert (await far.until("session_awaiting_input"))[-1]["awaiting"] is False
        assert await awaiting(house, session_id) == [False, False]
    assert await pending(house) == []


async def test_who_answered_is_on_record(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob) as other:
        question = await ask(one, session_id)
        await answer(other, question, denied=True)
        await one.turn()
    (event,) = [each for each in await house.events(session_id) if each["event_type"] == "interaction_answered"]
    assert event["details"] == {
        "interaction_id": question["interaction_id"],
        "interaction_type": "question",
        "denied": True,
    }
    assert (event["actor_id"], event["caused_by_actor_id"]) == ("act_bob", "act_bob")


async def test_nobody_has_to_watch(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
    await trio.sleep(1800)
    assert await awaiting(house, session_id) == [True, True]
    async with tab(house.bob) as later:
        await answer(later, question, BLUE)
        await later.until("session_running")
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert messages[-1]["content"].startswith("First. So Blue;")


async def test_chat_waits_for_the_answer(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play(*ASK))
        await answer(one, await asked(one), BLUE)


@pytest.mark.req("WS-22")
@pytest.mark.parametrize(("message", "told"), [({"message": " Later, please.\n"}, " Later, please.\n"), ({}, None)])
async def test_a_refusal_reaches_the_agent_and_the_turn_goes_on(
    house: House, message: dict[str, str], told: str | None
) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await answer(one, await ask(one, session_id), denied=True, **message)
        rest = await one.turn()
        result = of(rest, "tool_result")[0]
        assert (result["result"], result["is_error"]) == (told or "Declined by user.", True)
        assert of(rest, "done")


async def test_an_answer_counts_once(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob, session_id) as other:
        question = await ask(one, session_id)
        await answer(one, question, BLUE)
        await answer(other, question, {"answers": {"colour": "Red"}})
        rest = await one.turn()
        assert "Blue" in text(rest)
        assert of(rest, "error") == []
        (error,) = of(await other.until("error"), "error")
        assert error == {"type": "error", "session_id": session_id, "error": "interaction_not_found"}


async def test_two_answers_at_the_same_moment_are_one(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob, session_id) as other:
        question = await ask(one, session_id)
        async with trio.open_nursery() as nursery:
            for tab_, colour in ((one, "Red"), (other, "Blue")):
                nursery.start_soon(answer, tab_, question, {"answers": {"colour": colour}})
        frames = [*await one.turn(), *await other.turn()]
        assert len(of(frames, "interaction_resolved")) == 2
        assert len([each for each in frames if each.get("error") == "interaction_not_found"]) == 1
        events = [each["event_type"] for each in await house.events(session_id)]
        assert events.count("interaction_answered") == 1


@pytest.mark.parametrize("session", ["main", "nowhere"])
async def test_an_unknown_question(house: House, session: str) -> None:
    async with tab(house.alice) as one:
        await answer(one, {"session_id": session, "interaction_id": "nothing"}, BLUE)
        error = (await one.until("error"))[-1]
        assert error == {"type": "error", "session_id": session, "error": "interaction_not_found"}


async def test_an_answer_without_answers_is_a_bad_frame_and_changes_nothing(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob) as other:
        question = await ask(one, session_id)
        for result in (None, {}, {"answers": "Blue"}):
            await answer(other, question, result)
            assert (await other.until("error"))[-1] == {"type": "error", "session_id": "main", "error": "bad_frame"}
        assert await awaiting(house, session_id) == [True, True]
        await answer(other, question, BLUE)
        assert "Blue" in text(await one.turn())


@pytest.mark.req("WS-23", "WS-24", "WS-57", "WS-69")
async def test_a_plan_is_refused_revised_and_approved_with_edits(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play(*PLAN))
        first = await one.until("plan_summary")
        update, tool, question, summary = of(first, "plan_update", "tool_use", "interaction", "plan_summary")
        assert update["content"] == "# Plan"
        assert question["interaction_type"] == "plan_exit"
        assert question["tool_name"] == tool["tool"] == "ExitPlanMode"
        assert question["tool_input"] == tool["input"]
        assert question["tool_input"]["plan"] == "# Plan"
        assert question["tool_input"]["planFilePath"].endswith(f"/plans/{session_id}.md")
        assert {key: summary[key] for key in ("interaction_id", "bullets", "status")} == {
            "interaction_id": question["interaction_id"],
            "bullets": [],
            "status": "unavailable",
        }
        await answer(one, question, denied=True, message="Shorter.")
        second = await one.until("plan_summary")
        assert of(second, "tool_result")[0]["result"] == "Shorter."
        again = of(second, "interaction")[0]
        assert again["interaction_id"] != question["interaction_id"]
        assert again["tool_input"]["plan"] == "# Shorter"
        await answer(one, again, {"plan": "# Mine"})
        rest = await one.turn()
        assert of(rest, "plan_update")[0]["content"] == "# Mine"
        result = of(rest, "tool_result")[0]
        assert not result["is_error"]
        assert result["result"].endswith("# Mine")


@pytest.mark.req("WS-23")
async def test_a_plan_is_approved_as_it_is(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await answer(one, await ask(one, session_id, *PLAN), None)
        rest = await one.turn()
        assert of(rest, "plan_update") == []
        assert [each["is_error"] for each in of(rest, "tool_result")] == [False]


@pytest.mark.parametrize("kind", ["command", "file", "permission"])
@pytest.mark.parametrize("result", [{}, None, ...])
async def test_an_approval_is_given(house: House, kind: str, result: object) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id, f"- approve: {kind}", "  input: {command: ls}")
        assert question["interaction_type"] == f"{kind}_approval"
        assert question["tool_input"] == {"command": "ls"}
        await answer(one, question, result)
        assert [each["is_error"] for each in of(await one.turn(), "tool_result")] == [False]


async def test_several_questions_after_one_another(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play("- approve: file", "- approve: file", "- ask: [{question: Why?}]"))
        for result in ({}, {}, {"answers": {"Why?": "Because."}}):
            await answer(one, await asked(one), result)
        rest = await one.turn()
        assert of(rest, "tool_result")[-1]["result"] == "The person answered.\nWhy?: Because."
    waits = [each["awaiting"] for each in of(one.frames, "session_awaiting_input")]
    assert waits == [True, False] * 3


@pytest.mark.parametrize("source", ["cron", "hook", "telegram", "slack", "workflow", "external"])
async def test_where_nobody_sits_nobody_is_asked(house: House, source: str) -> None:
    session_id = await system_session(house, "s-1", source)
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play(*ASK))
        rest = await one.turn()
        assert of(rest, "interaction", "session_awaiting_input") == []
        (result,) = of(rest, "tool_result")
        assert result["is_error"]
        assert "ask_user" in result["result"]
        assert of(rest, "done")


# --- a full disk --------------------------------------------------------------------------------------------------


class Refusing:
    """A disk without room for one kind of write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.full = True
        real = getattr(interactions, name)

        def refused(*args: object) -> None:
            if self.full:
                raise NerveError(ErrorCode.STORE_FULL)
            real(*args)

        monkeypatch.setattr(interactions, name, refused)


async def test_a_question_that_cannot_be_recorded_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    Refusing(monkeypatch, "begin")
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play(*ASK))
        rest = await one.turn()
        assert of(rest, "interaction", "session_awaiting_input") == []
        assert of(rest, "tool_result")[0]["is_error"]
        assert of(rest, "done")


async def test_an_answer_that_cannot_be_recorded_may_be_given_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Refusing(monkeypatch, "end")
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        await answer(one, question, BLUE)
        error = (await one.until("error"))[-1]
        assert "seq" not in error
        assert error["error"] not in ("bad_frame", "interaction_not_found")
        assert await awaiting(house, session_id) == [True, True]
        disk.full = False
        await answer(one, question, BLUE)
        assert "Blue" in text(await one.turn())


async def test_an_end_that_cannot_be_recorded_is_recorded_with_the_turn(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Refusing(monkeypatch, "end")
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        await one.until("session_awaiting_input")
        await one.send("stop", session_id=session_id)
        assert (await one.until("session_awaiting_input"))[-1]["awaiting"] is False
        assert await awaiting(house, session_id) == [False, False]
        disk.full = False
        rest = await one.turn()
        assert types(of(rest, "interaction_resolved", "tool_result", "stopped")) == [
            "interaction_resolved",
            "tool_result",
            "stopped",
        ]
        assert of(rest, "interaction_resolved")[0]["interaction_id"] == question["interaction_id"]
    assert await pending(house) == []
