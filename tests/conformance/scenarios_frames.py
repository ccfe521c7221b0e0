"""How each frame of the server is provoked, by its type and the name of its example in spec/."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.conformance.recipes import NOWHERE
from tests.conformance.subject import FrameScenario, Local, SocketTalk, Subject, new_session, script

Frame = Any


@asynccontextmanager
async def talking(subject: Subject, **query: Any) -> AsyncIterator[SocketTalk]:
    """A socket of the owner, bound to a session of its own unless ``query`` names one; the bind has been told."""
    session_id = query.get("session_id") or await new_session(subject.owner)
    async with subject.owner.connect({**query, "session_id": session_id}) as socket:
        talk = SocketTalk(socket, session_id)
        await talk.until("session_status")
        yield talk


def played(kind: str, *steps: str) -> FrameScenario:
    """What a play of these steps brings."""

    async def play(subject: Subject) -> Frame:
        async with talking(subject) as talk:
            await talk.say(script(*steps))
            return await talk.until(kind)

    return FrameScenario(play)


async def stop_a_turn(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: on and on", "wait: 30"))
        await talk.until("token")
        await talk.send("stop")
        return await talk.until("stopped")


async def change_a_file(subject: Subject) -> Frame:
    """A new file, which is gone again at the end."""
    name = subject.unique("conformance-") + ".txt"
    steps = f"{{write: {name}, content: one}}", f"{{edit: {name}, old: one, new: two}}", f"{{delete: {name}}}"
    async with talking(subject) as talk:
        await talk.say(script(*steps))
        changed = await talk.until("file_changed", lambda frame: frame["operation"] == "edit")
        await talk.until("done")
        return changed


async def ask_for_an_unknown_session(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.socket.send_json({"type": "switch_session", "session_id": NOWHERE})
        return await talk.until("error")


async def send_while_shutting_down(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        subject.faults.shut_down()
        await talk.say("Hello", client_msg_id="m-1")
        return await talk.until("error")


async def hear_another_socket(subject: Subject) -> Frame:
    async with talking(subject) as listener, talking(subject, session_id=listener.session_id) as speaker:
        await speaker.say(script("say: hello"), client_msg_id="m-1")
        return await listener.until("user_message")


async def bind_in_mid_turn(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello", "wait: 30"))
        await talk.until("token")
        async with subject.owner.connect({"session_id": talk.session_id}) as late:
            return await SocketTalk(late, talk.session_id).until("session_status")


async def switch(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.socket.send_json({"type": "switch_session", "session_id": "main"})
        return await talk.until("session_switched")


async def come_back_too_late(subject: Subject) -> Frame:
    """The log keeps three frames; the first of these turns has more."""
    async with talking(subject) as talk:
        for _ in range(2):
            await talk.say(script(*["think: hm", "say: well"] * 4))
            await talk.until("done")
        await talk.send("switch_session", after_seq=1)
        return await talk.until("gap")


async def come_back_from_the_future(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello"))
        await talk.until("done")
        await talk.send("switch_session", after_seq=1_000_000)
        return await talk.until("gap")


async def end_a_turn(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello"))
        return await talk.until("session_running", lambda frame: not frame["is_running"])


async def wake_up(subject: Subject) -> Frame:
    """Within a minute and the twenty seconds between two looks."""
    async with talking(subject) as talk:
        await talk.say(script("{wakeup: 60, prompt: Go on.}"))
        await talk.until("done")
        return (await talk.socket.receive_until("wakeup", within=90))[-1]


_ASK = "ask: [{question: Which colour?, header: colour, options: [{label: Red}, {label: Blue}]}]"
_PLAN = "plan: Plant a tree"


async def answer_a_question(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script(_ASK))
        asked = await talk.until("interaction")
        answer = {"interaction_id": asked["interaction_id"], "result": {"answers": {"colour": "Blue"}}}
        await talk.send("answer_interaction", **answer)
        return await talk.until("interaction_resolved")


async def rename(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        path = {"session_id": talk.session_id}
        await subject.owner.ok("sessions.update", {"title": "Italy"}, path=path)
        return await talk.until("session_updated")


async def fork_a_session(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello"))
        await talk.until("done")
        await talk.send("fork", title="My Fork")
        return await talk.until("session_forked")


async def archive_a_session(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await subject.owner.ok("sessions.archive", path={"session_id": talk.session_id})
        return await talk.until("session_archived")


async def resume_a_session(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello"))
        await talk.until("done")
        await subject.owner.ok("sessions.archive", path={"session_id": talk.session_id}, query={"force": "true"})
        await talk.send("resume")
        return await talk.until("session_resumed")


async def ping(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.socket.send_json({"type": "ping"})
        return await talk.until("pong")


# --- what leaves the queue ----------------------------------------------------------------------------------------


async def one_waits_one_begins(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("wait: 1"))
        await talk.until("session_running")
        await talk.say(script("wait: 30"), client_msg_id="m-2")
        await talk.say("And then?")
        return await left(talk, "started", "m-2")


async def left(talk: SocketTalk, reason: str, client_msg_id: str) -> Frame:
    """The queue_update that tells that a message left the queue for this reason."""

    def fits(frame: Frame) -> bool:
        gone = {(entry["client_msg_id"], entry["reason"]) for entry in frame.get("removed", [])}
        return (client_msg_id, reason) in gone

    return await talk.until("queue_update", fits)


async def start_at_once(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("say: hello"), client_msg_id="m-1")
        return await left(talk, "started", "m-1")


async def send_twice(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        for _ in range(2):
            await talk.say(script("say: hello"), client_msg_id="m-1")
        return await left(talk, "duplicate", "m-1")


async def cancel_one(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("wait: 30"))
        await talk.until("session_running")
        await talk.say("And then?", client_msg_id="m-2")
        waiting = await talk.until("queue_update", lambda frame: frame["queue"] != [])
        path = {"session_id": talk.session_id, "queue_id": waiting["queue"][0]["queue_id"]}
        await subject.owner.ok("queue.cancel", path=path)
        return await left(talk, "cancelled", "m-2")


async def be_refused(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        subject.faults.shut_down()
        await talk.say("Hello", client_msg_id="m-1")
        return await left(talk, "refused", "m-1")


REMOVALS: Mapping[str, FrameScenario] = {
    "started": FrameScenario(start_at_once),
    "duplicate": FrameScenario(send_twice),
    "cancelled": FrameScenario(cancel_one),
    "refused": FrameScenario(be_refused, local=Local.FAULTS),
}

_TOOL = "{tool: Bash, input: {command: pytest -q}, output: ['212 passed'], result: 212 passed}"
_FORM = "form: {title: Launch, questions: [{id: a, kind: text, label: Name, question: What is it called?}]}"
_USAGE = "usage: {input_tokens: 9, output_tokens: 4, max_context_tokens: 1000, num_turns: 1}"

SCENARIOS: Mapping[tuple[str, str], FrameScenario] = {
    ("token", "token"): played("token", "say: hello"),
    ("thinking", "thinking"): played("thinking", "think: Let me see"),
    ("tool_use", "a shell command"): played("tool_use", _TOOL),
    ("tool_output", "output"): played("tool_output", _TOOL),
    ("tool_result", "result"): played("tool_result", _TOOL),
    ("done", "with usage"): played("done", _USAGE),
    ("done", "without"): played("done", "say: hello"),
    ("stopped", "stopped"): FrameScenario(stop_a_turn),
    ("error", "a failed turn"): played("error", "fail: The model is overloaded."),
    ("error", "a request"): FrameScenario(ask_for_an_unknown_session),
    ("error", "a refused message"): FrameScenario(send_while_shutting_down, local=Local.FAULTS),
    ("wakeup", "wakeup"): FrameScenario(wake_up, local=Local.CLOCK),
    ("user_message", "from another tab"): FrameScenario(hear_another_socket),
    ("file_changed", "an edit"): FrameScenario(change_a_file),
    ("interaction", "a form"): played("interaction", _FORM),
    ("interaction", "a question"): played("interaction", _ASK),
    ("interaction", "a plan"): played("interaction", _PLAN),
    ("interaction_resolved", "resolved"): FrameScenario(answer_a_question),
    ("session_awaiting_input", "waits"): played("session_awaiting_input", _ASK),
    ("plan_update", "plan"): played("plan_update", _PLAN),
    ("plan_summary", "unavailable"): played("plan_summary", _PLAN),
    ("model_changed", "a fallback"): played("model_changed", "{model: smaller, downgrade: true}"),
    ("session_switched", "switched"): FrameScenario(switch),
    ("session_status", "in mid-turn"): FrameScenario(bind_in_mid_turn),
    ("gap", "lost"): FrameScenario(come_back_too_late, settings={"sessions": "event_log_frames: 3"}),
    ("gap", "reset"): FrameScenario(come_back_from_the_future),
    ("session_running", "a turn ended"): FrameScenario(end_a_turn),
    ("queue_update", "one waits, one began"): FrameScenario(one_waits_one_begins),
    ("session_updated", "title"): FrameScenario(rename),
    ("session_forked", "forked"): FrameScenario(fork_a_session),
    ("session_resumed", "resumed"): FrameScenario(resume_a_session),
    ("session_archived", "archived"): FrameScenario(archive_a_session),
    ("pong", "pong"): FrameScenario(ping),
}
