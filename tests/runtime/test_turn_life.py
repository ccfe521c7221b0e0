"""One turn from its message to its record: frames, rows, events, and who hears what."""

from typing import Any

import pytest

from tests.runtime.tabs import Frame, numbers, of, tab, text, types
from tests.sessions.session_house import ALICE, BOB, House, play

EVERYTHING = play(
    "- think: Let me see.",
    "- say: 'Hello '",
    "- tool: Bash",
    "  input: {command: ls}",
    "  output: [a, b]",
    "  result: '2 files'",
    "  seconds: 0.3",
    "- write: notes.md",
    "  content: colour",
    "- edit: notes.md",
    "  old: colour",
    "  new: color",
    "- delete: notes.md",
    "- edit: notes.md",
    "  old: a",
    "  new: b",
    "- model: small",
    "  downgrade: true",
    "- say: world",
    "- usage: {input_tokens: 900, output_tokens: 40, cost_usd: 0.25, max_context_tokens: 1000, num_turns: 2}",
    "- usage: {output_tokens: 2, cache_read_input_tokens: 7, cost_usd: 0.5}",
)


async def rows(house: House, session_id: str) -> list[dict[str, Any]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return list(reply.json["messages"])


@pytest.mark.req("WS-29", "WS-30", "WS-31", "WS-32", "WS-33", "WS-58", "WS-66")
async def test_every_frame_of_a_turn_in_its_order(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, EVERYTHING, "c1")
        frames = await alice.turn()
    assert types(frames) == [
        "queue_update",
        "session_running",
        "session_updated",
        "thinking",
        "token",
        "tool_use",
        "tool_output",
        "tool_result",
        *("tool_use", "tool_result", "file_changed") * 3,
        "tool_use",
        "tool_result",
        "model_changed",
        "token",
        "done",
        "session_running",
    ]
    # Number 1 is the user_message, which its sender does not get.
    assert numbers(frames) == list(range(2, 2 + len(numbers(frames))))
    assert text(frames) == "Hello world"
    assert "".join(frame["content"] for frame in of(frames, "thinking")) == "Let me see."
    bash = of(frames, "tool_use")[0]
    assert (bash["tool"], bash["input"]) == ("Bash", {"command": "ls"})
    outputs = of(frames, "tool_output")
    assert [(frame["content"], frame["tool_use_id"]) for frame in outputs] == [
        ("a", bash["tool_use_id"]),
        ("b", bash["tool_use_id"]),
    ]
    results = of(frames, "tool_result")
    assert (results[0]["result"], results[0]["is_error"]) == ("2 files", False)
    assert [frame["is_error"] for frame in results] == [False, False, False, False, True]
    path = str(house.services.config.workspace / "notes.md")
    changes = of(frames, "file_changed")
    assert [(frame["path"], frame["operation"]) for frame in changes] == [
        (path, "write"),
        (path, "edit"),
        (path, "delete"),
    ]
    assert [frame["tool_use_id"] for frame in changes] == [frame["tool_use_id"] for frame in results[1:4]]
    model = of(frames, "model_changed")[0]
    assert (model["from_model"], model["to_model"], model["downgrade"]) == ("scripted", "small", True)
    assert of(frames, "done")[0]["usage"] == {
        "input_tokens": 900,
        "output_tokens": 42,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 0,
    }
    assert (of(frames, "done")[0]["max_context_tokens"], of(frames, "done")[0]["num_turns"]) == (1000, 2)


@pytest.mark.req("WS-54", "WS-42", "SESS-29")
async def test_what_a_turn_leaves_behind(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        await bob.say(session_id, EVERYTHING, "c1")
        frames = await bob.turn()
    user, assistant = await rows(house, session_id)
    assert (user["role"], user["content"], user["channel"], user["actor_id"]) == ("user", EVERYTHING, "web", BOB)
    assert (assistant["role"], assistant["content"], assistant["actor_id"]) == ("assistant", "Hello world", None)
    assert user["blocks"] is None
    assert assistant["thinking"] == "Let me see."
    kinds = [block["type"] for block in assistant["blocks"]]
    assert kinds == ["thinking", "text", *["tool_call"] * 5, "model_change", "text"]
    call = assistant["blocks"][2]
    assert (call["tool"], call["result"], call["is_error"]) == ("Bash", "2 files", False)
    assert assistant["blocks"][-2] == {"type": "model_change", "from": "scripted", "to": "small", "downgrade": True}
    title = "#!nerve-scenario - think: Let me see. -"
    assert of(frames, "session_updated")[0]["title"].startswith(title[:30])
    row = await house.row(session_id)
    assert (row["title"], row["status"], row["message_count"]) == (
        of(frames, "session_updated")[0]["title"],
        "active",
        2,
    )
    assert row["total_cost_usd"] == 0.75
    assert [event["event_type"] for event in await house.events(session_id)] == ["started", "title_changed", "created"]
    started, titled, _ = await house.events(session_id)
    assert started["details"] == {"sdk_session_id": row["sdk_session_id"]}
    assert (started["actor_id"], started["caused_by_actor_id"]) == (None, None)
    assert titled["details"] == {"title": row["title"], "previous": session_id}
    assert (titled["actor_id"], titled["caused_by_actor_id"]) == ("act_system", ALICE)


@pytest.mark.req("SESS-29")
async def test_cost_adds_up_and_the_newest_usage_counts(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- usage: {input_tokens: 5, cost_usd: 0.5}", "- say: a"))
    await house.run(session_id, play("- usage: {input_tokens: 7, cost_usd: 0.25}", "- say: b"))
    await house.run(session_id, play("- say: c"))
    assert (await house.row(session_id))["total_cost_usd"] == 0.75
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    assert reply.json["last_usage"]["input_tokens"] == 7


@pytest.mark.req("WS-33")
async def test_without_usage_done_has_none(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: hi"))
        frames = await alice.turn()
    assert of(frames, "done") == [{"type": "done", "session_id": session_id, "seq": 3}]


@pytest.mark.req("WS-40", "WS-41", "WS-42", "WS-74", "WS-75", "WS-47")
async def test_who_hears_what(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with (
        tab(house.alice, session_id) as sender,
        tab(house.alice, session_id) as second,
        tab(house.bob, session_id) as bob,
        tab(house.bob, other) as elsewhere,
    ):
        await sender.say(session_id, play("- say: hi"), "c1")
        heard = await sender.turn()
        second_heard, bob_heard = await second.turn(), await bob.turn()
        elsewhere_heard = await elsewhere.quiet()
    assert of(heard, "user_message") == []
    expected = {
        "type": "user_message",
        "session_id": session_id,
        "content": play("- say: hi"),
        "blocks": None,
        "actor_id": ALICE,
        "client_msg_id": "c1",
        "seq": 1,
    }
    assert of(second_heard, "user_message") == of(bob_heard, "user_message") == [expected]
    assert [f for f in second_heard if f["type"] != "user_message"] == heard
    assert bob_heard == second_heard
    # Only what is global comes to the socket that is bound elsewhere.
    assert [(f["type"], f["session_id"], f["is_running"]) for f in elsewhere_heard] == [
        ("session_running", session_id, True),
        ("session_running", session_id, False),
    ]
    running = of(heard, "session_running")[0]
    assert running == {
        "type": "session_running",
        "session_id": session_id,
        "is_running": True,
        "pending_wakeup_at": None,
        "pending_wakeup_created_by_actor_id": None,
        "pending_wakeup_caused_by_actor_id": None,
        "has_background_tasks": False,
        "background_count": 0,
    }


@pytest.mark.req("WS-41")
async def test_a_later_replay_shows_the_sender_its_own_message(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: hi"), "c1")
        live = await alice.turn()
        await alice.switch(session_id, after_seq=0)
        replayed = await alice.beat()
    assert [f["type"] for f in replayed] == ["user_message", "token", "done"]
    assert replayed[1:] == [f for f in live if "seq" in f]


@pytest.mark.req("WS-46", "WS-44", "WS-12")
async def test_a_socket_that_switched_hears_only_the_new_session(house: House) -> None:
    first, second = await house.create(), await house.create()
    async with tab(house.alice, first) as alice, tab(house.bob, first) as bob:
        switched, status = (await alice.switch(second))[-2:]
        assert switched == {"type": "session_switched", "session_id": second}
        assert (status["session_id"], status["is_running"], status["status"]) == (second, False, "created")
        await bob.say(first, play("- say: one"))
        await bob.turn()
        await bob.say(second, play("- say: two"))
        await bob.turn()
        heard = await alice.quiet()
    assert {f["session_id"] for f in heard if f["type"] != "session_running"} == {second}
    assert text(heard) == "two"


@pytest.mark.req("WS-74")
async def test_a_message_to_another_session_binds_the_socket_there(house: House) -> None:
    first, second = await house.create(), await house.create()
    async with tab(house.alice, first) as alice:
        await alice.say(second, play("- say: hi"))
        frames = await alice.turn()
    assert [f["type"] for f in frames[:2]] == ["session_switched", "session_status"]
    assert frames[0]["session_id"] == second
    assert text(frames) == "hi"


async def test_numbers_go_on_from_turn_to_turn(house: House) -> None:
    session_id = await house.create()
    seen: list[Frame] = []
    async with tab(house.bob, session_id) as bob:
        for n in range(5):
            await house.run(session_id, play(f"- say: turn {n}", "- tool: Bash", "- think: so"))
            seen += await bob.turn()
    assert numbers(seen) == list(range(1, len(numbers(seen)) + 1))
    status = (await house.alice.get(f"/api/sessions/{session_id}/status")).json
    assert status["last_seq"] == numbers(seen)[-1]
    stored = await house.sql("SELECT seq FROM frames WHERE session_id = ? ORDER BY seq", session_id)
    assert [seq for (seq,) in stored] == numbers(seen)
    assert await house.sql("SELECT seq_reserved FROM sessions WHERE id = ?", session_id) == [(numbers(seen)[-1],)]


async def test_a_title_that_somebody_gave_stays(house: House) -> None:
    session_id = await house.create(title="Mine")
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "Something else")
        frames = await alice.turn()
    assert of(frames, "session_updated") == []
    assert (await house.row(session_id))["title"] == "Mine"


@pytest.mark.req("WS-58", "WS-10")
async def test_a_model_of_a_message_is_for_its_turn_only(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        changes = []
        for model in ("big", "big", None, None):
            await alice.say(session_id, play("- say: hi"), model=model)
            changes.append([(f["from_model"], f["to_model"]) for f in of(await alice.turn(), "model_changed")])
    assert changes == [[("scripted", "big")], [], [("big", "scripted")], []]
    assert (await house.row(session_id))["model"] is None


@pytest.mark.req("WS-58")
async def test_the_serving_model_of_a_play_stays_until_it_changes(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- model: small", "- say: hi"))
        first = await alice.turn()
        await alice.say(session_id, play("- say: hi"))
        second = await alice.turn()
        await alice.say(session_id, play("- model: scripted", "- say: hi"))
        third = await alice.turn()
    assert len(of(first, "model_changed")) == 1
    assert of(second, "model_changed") == []
    assert [(f["from_model"], f["to_model"]) for f in of(third, "model_changed")] == [("small", "scripted")]
