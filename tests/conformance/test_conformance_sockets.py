"""What a person with several windows sees: who hears what, once each, and as whom."""

from typing import Any

import pytest

from tests.conformance.conftest import local
from tests.conformance.scenarios_frames import left, talking
from tests.conformance.subject import Local, SocketTalk, Subject, new_person, new_session, script
from tests.spec_client import SocketClient

GLOBAL = {"session_running"}


async def heard(talk: SocketTalk) -> list[dict[str, Any]]:
    """Everything up to now: what was sent before the answer to a ping."""
    await talk.socket.send_json({"type": "ping"})
    return (await talk.socket.receive_until("pong"))[:-1]


@pytest.mark.req("WS-74", "WS-75")
async def test_frames_of_a_session_go_to_its_sockets_and_global_ones_to_all(subject: Subject) -> None:
    stranger, _ = await new_person(subject)
    async with talking(subject) as talk, talking(subject, session_id=talk.session_id) as tab, stranger.connect() as far:
        await talk.say(script("think: hm", "say: hello"))
        for each in (talk, tab):
            await each.until("session_running", lambda frame: not frame["is_running"])
        elsewhere = await heard(SocketTalk(far, "main"))
        assert [f["is_running"] for f in elsewhere if f["type"] == "session_running"] == [True, False]
        assert {f["type"] for f in elsewhere if f.get("session_id") == talk.session_id} == GLOBAL


@pytest.mark.req("WS-40", "WS-41", "WS-42", "SESS-36")
async def test_a_message_is_told_to_the_others_and_to_its_sender_only_when_it_comes_back(subject: Subject) -> None:
    person, account = await new_person(subject)
    async with talking(subject) as owner:
        async with person.connect({"session_id": owner.session_id}) as socket:
            talk = SocketTalk(socket, owner.session_id)
            await talk.until("session_status")
            await talk.say(script("say: hello"), client_msg_id="m-1")
            told = await owner.until("user_message")
            assert (told["actor_id"], told["client_msg_id"]) == (account["actor_id"], "m-1")
            own = await socket.receive_until("done")
            assert "user_message" not in [frame["type"] for frame in own]
            await talk.send("switch_session", after_seq=0)
            assert await talk.until("user_message") == told
        stored = (await subject.owner.ok("sessions.messages", path={"session_id": owner.session_id}))["messages"]
        assert [message["actor_id"] for message in stored] == [account["actor_id"], None]


@pytest.mark.req("WS-09", "CHAT-02")
async def test_one_client_msg_id_runs_once_whichever_way_it_comes(subject: Subject) -> None:
    async with talking(subject) as talk, talking(subject, session_id=talk.session_id) as tab:
        await talk.say(script("say: once"), client_msg_id="m-1")
        await talk.until("done")
        await tab.say(script("say: twice"), client_msg_id="m-1")
        await left(tab, "duplicate", "m-1")
        body = {"message": "again", "session_id": talk.session_id, "client_msg_id": "m-1"}
        assert (await subject.owner.ok("chat.send", body))["response"] == ""
        stored = (await subject.owner.ok("sessions.messages", path={"session_id": talk.session_id}))["messages"]
        assert [message["role"] for message in stored] == ["user", "assistant"]


@pytest.mark.req("WS-05", "ACCT-05")
async def test_a_socket_keeps_the_actor_that_it_came_as(subject: Subject) -> None:
    person, account = await new_person(subject)
    async with talking(subject) as owner, person.connect({"session_id": owner.session_id}) as socket:
        await socket.receive_until("session_status")
        change = {"username": subject.unique("renamed-"), "display_name": "Somebody else"}
        renamed = await subject.owner.ok("accounts.update", change, path={"account_id": account["id"]})
        assert renamed["actor_id"] == account["actor_id"]
        await SocketTalk(socket, owner.session_id).say(script("say: hello"))
        assert (await owner.until("user_message"))["actor_id"] == account["actor_id"]


@local(Local.FAULTS)
@pytest.mark.req("WS-36")
async def test_a_refusal_is_for_its_sender_and_its_removal_comes_first(subject: Subject) -> None:
    async with talking(subject) as talk, talking(subject, session_id=talk.session_id) as tab:
        subject.faults.shut_down()
        await talk.say("Hello", client_msg_id="m-1")
        update, error = (await talk.socket.receive_until("error"))[-2:]
        assert [entry["reason"] for entry in update["removed"]] == ["refused"]
        assert (error["client_msg_id"], error["session_id"]) == ("m-1", talk.session_id)
        assert await heard(tab) == []


@local(Local.FAULTS)
@pytest.mark.req("WS-36")
async def test_what_waits_at_the_end_is_refused_in_the_same_order(subject: Subject) -> None:
    async with talking(subject) as talk:
        await talk.say(script("wait: 30"))
        await talk.until("session_running")
        await talk.say("And then?", client_msg_id="m-2")
        await talk.until("queue_update", lambda frame: frame["queue"] != [])
        await subject.faults.close_down()
        frames = await talk.socket.receive_until("error")
        while frames[-1].get("client_msg_id") != "m-2":
            frames += await talk.socket.receive_until("error")
        told = [frame["type"] for frame in frames if frame["type"] == "queue_update" or "client_msg_id" in frame]
        assert told == ["queue_update", "error"]
        await talk.socket.expect_close(1012)


@local(Local.KEYS)
@pytest.mark.req("WS-07")
async def test_no_token_comes_over_a_socket(subject: Subject) -> None:
    me = (await subject.owner.ok("auth.me"))["account"]
    old = subject.anyone.with_(token=subject.keys.session(me["id"], age_seconds=3000, life_seconds=3600))
    assert "x-nerve-token" in (await old.call("auth.check")).reply.headers
    async with old.connect() as socket:
        talk = SocketTalk(socket, "main")
        await talk.say(script("say: hello"))
        frames = await socket.receive_until("done")
        assert not any("token" in frame for frame in frames)


@pytest.mark.req("WS-43", "WS-44", "WS-46")
async def test_each_bind_is_told_by_two_frames(subject: Subject) -> None:
    other = await new_session(subject.owner)
    async with subject.owner.connect() as socket:
        await bound(socket, "main")
        for session_id in (other, other, "main"):
            await socket.send_json({"type": "switch_session", "session_id": session_id})
            await bound(socket, session_id)
    async with subject.owner.connect({"session_id": other}) as socket:
        await bound(socket, other)


async def bound(socket: SocketClient, session_id: str) -> None:
    switched, status = await socket.receive_json(), await socket.receive_json()
    assert (switched["type"], status["type"]) == ("session_switched", "session_status")
    assert switched["session_id"] == status["session_id"] == session_id
