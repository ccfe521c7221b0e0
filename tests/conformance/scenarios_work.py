"""Scenarios of sessions, chat, stops and the queue, one for each of their own documented errors."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.recipes import NOWHERE, newest_message, queued_behind, started_session, upload
from tests.conformance.scenarios_people import changed, on
from tests.conformance.subject import Local, Scenario, SocketTalk, Subject, new_person, new_session, script
from tests.spec_client import Answer
from tests.spec_replies import Documented

QUEUE_MAX = 50  # the default of sessions.queue_max
LARGEST_FILE = 20 * 1024 * 1024

# --- sessions -----------------------------------------------------------------------------------------------------


def created(**body: Any) -> Scenario:
    return changed("sessions.create", **body)


async def create_on_a_runtime_that_is_not_there(subject: Subject) -> Answer:
    return await subject.owner.call("sessions.create", {"backend": "codex"})


async def change_nothing(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    return await subject.owner.call("sessions.update", {"colour": "red"}, path={"session_id": session_id})


async def put_under_itself(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    body = {"parent_session_id": session_id}
    return await subject.owner.call("sessions.update", body, path={"session_id": session_id})


async def move_before_it_has_run(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    return await subject.owner.call("sessions.update", {"parent_session_id": "main"}, path={"session_id": session_id})


async def fork_at(subject: Subject, session_id: str, message_id: str | None) -> Answer:
    return await subject.owner.call("sessions.fork", {"source_session_id": session_id, "at_message_id": message_id})


async def fork_at_no_such_message(subject: Subject) -> Answer:
    return await fork_at(subject, await started_session(subject), NOWHERE)


async def fork_what_has_not_run(subject: Subject) -> Answer:
    return await fork_at(subject, await new_session(subject.owner), None)


async def fork_at_an_unmapped_message(subject: Subject) -> Answer:
    session_id = await started_session(subject, "say: hello", "unmapped: true")
    return await fork_at(subject, session_id, await newest_message(subject, session_id))


async def resume_what_has_not_run(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    return await subject.owner.call("sessions.resume", path={"session_id": session_id})


async def delete_main(subject: Subject) -> Answer:
    return await subject.owner.call("sessions.delete", path={"session_id": "main"})


async def archive_main(subject: Subject) -> Answer:
    return await subject.owner.call("sessions.archive", path={"session_id": "main"})


async def search_for_nothing(subject: Subject) -> Answer:
    return await subject.owner.call("search.sessions", query={"q": " "})


# --- chat ---------------------------------------------------------------------------------------------------------


async def chat_that_fails(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    body = {"message": script("fail: The model is overloaded."), "session_id": session_id}
    return await subject.owner.call("chat.send", body)


async def chat_while_shutting_down(subject: Subject) -> Answer:
    subject.faults.shut_down()
    return await subject.owner.call("chat.send", {"message": "Hello", "session_id": "main"})


async def into_a_full_queue(subject: Subject, operation_id: str, **more: str) -> Answer:
    session_id = await new_session(subject.owner)
    async with subject.owner.connect({"session_id": session_id}) as socket:
        talk = SocketTalk(socket, session_id)
        await talk.say(script("wait: 30"))
        await talk.until("session_running")
        for number in range(QUEUE_MAX):
            await talk.say(f"message {number}")
        await talk.until("queue_update", lambda frame: len(frame["queue"]) == QUEUE_MAX)
        return await subject.owner.call(operation_id, {"message": "one more", "session_id": session_id, **more})


async def chat_into_a_full_queue(subject: Subject) -> Answer:
    return await into_a_full_queue(subject, "chat.send")


async def run_into_a_full_queue(subject: Subject) -> Answer:
    return await into_a_full_queue(subject, "scheduling.run_later", delay="none")


async def run_later_than_the_end(subject: Subject) -> Answer:
    subject.faults.shut_down()
    body = {"message": "Hello", "session_id": "main", "delay": "1h"}
    return await subject.owner.call("scheduling.run_later", body)


async def run_later_with_no_such_file(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    body = {"message": "Hello", "session_id": session_id, "delay": "1h", "file_ids": [NOWHERE]}
    return await subject.owner.call("scheduling.run_later", body)


# --- the queue ----------------------------------------------------------------------------------------------------


async def cancel_what_is_not_there(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    return await subject.owner.call("queue.cancel", path={"session_id": session_id, "queue_id": NOWHERE})


async def cancel_what_runs(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    async with subject.owner.connect({"session_id": session_id}) as socket:
        queue_id = await queued_behind(subject.owner, session_id, "wait: 0.5", then="wait: 30")
        talk = SocketTalk(socket, session_id)
        await talk.until("queue_update", lambda frame: queue_id in [r["queue_id"] for r in frame.get("removed", [])])
        return await subject.owner.call("queue.cancel", path={"session_id": session_id, "queue_id": queue_id})


async def cancel_what_somebody_else_sent(subject: Subject) -> Answer:
    somebody, _ = await new_person(subject)
    session_id = await new_session(subject.owner)
    queue_id = await queued_behind(subject.owner, session_id)
    return await somebody.call("queue.cancel", path={"session_id": session_id, "queue_id": queue_id})


# --- files --------------------------------------------------------------------------------------------------------


async def diff_of_what_was_not_changed(subject: Subject) -> Answer:
    session_id = await new_session(subject.owner)
    return await subject.owner.call("files.diff", path={"session_id": session_id}, query={"path": "/etc/passwd"})


async def upload_into_nowhere(subject: Subject) -> Answer:
    return await upload(subject.owner, [("a.txt", b"x")], session_id=NOWHERE)


async def upload_too_great_a_file(subject: Subject) -> Answer:
    return await upload(subject.owner, [("a.txt", b"x"), ("great.bin", bytes(LARGEST_FILE + 1))])


async def upload_ever_more(subject: Subject) -> Answer:
    somebody, _ = await new_person(subject)
    session_id = await new_session(somebody)
    for _ in range(5):
        answer = await upload(somebody, [("a.txt", b"x")] * 20, session_id=session_id)
        assert answer.code == ""
    return await upload(somebody, [("a.txt", b"x")], session_id=session_id)


async def upload_into_what_is_no_directory(subject: Subject) -> Answer:
    subject.faults.block_uploads()
    return await upload(subject.owner, [("a.txt", b"x")])


async def download_what_is_not_there(subject: Subject) -> Answer:
    return await subject.owner.call("files.download", query={"path": NOWHERE})


async def download_from_outside(subject: Subject) -> Answer:
    return await subject.owner.call("files.download", query={"path": "../../../../../../etc/passwd"})


SCENARIOS: Mapping[Documented, Scenario] = {
    on("files.upload", "session_not_found"): Scenario(upload_into_nowhere),
    on("files.upload", "file_too_large"): Scenario(upload_too_great_a_file),
    on("files.upload", "too_many_uploads"): Scenario(upload_ever_more),
    on("files.upload", "uploads_unusable"): Scenario(upload_into_what_is_no_directory, local=Local.FAULTS),
    on("files.download", "file_not_found"): Scenario(download_what_is_not_there),
    on("files.download", "path_not_allowed"): Scenario(download_from_outside),
    on("files.diff", "snapshot_not_found"): Scenario(diff_of_what_was_not_changed),
    on("sessions.create", "unknown_backend"): created(backend="abacus"),
    on("sessions.create", "backend_unavailable"): Scenario(create_on_a_runtime_that_is_not_there, local=Local.SETTINGS),
    on("sessions.create", "bad_cwd"): created(cwd="not/absolute"),
    on("sessions.create", "empty_model"): created(model=" "),
    on("sessions.update", "nothing_to_update"): Scenario(change_nothing),
    on("sessions.update", "empty_title"): changed("sessions.update", title=" "),
    on("sessions.update", "empty_model"): changed("sessions.update", model=""),
    on("sessions.update", "parent_cycle"): Scenario(put_under_itself),
    on("sessions.update", "parent_not_found"): changed("sessions.update", parent_session_id=NOWHERE),
    on("sessions.update", "session_not_started"): Scenario(move_before_it_has_run),
    on("sessions.fork", "session_not_found"): changed("sessions.fork", source_session_id=NOWHERE),
    on("sessions.fork", "message_not_found"): Scenario(fork_at_no_such_message),
    on("sessions.fork", "not_forkable"): Scenario(fork_what_has_not_run),
    on("sessions.fork", "anchor_not_mapped"): Scenario(fork_at_an_unmapped_message),
    on("sessions.resume", "not_resumable"): Scenario(resume_what_has_not_run),
    on("sessions.delete", "main_is_permanent"): Scenario(delete_main),
    on("sessions.archive", "main_is_permanent"): Scenario(archive_main),
    on("sessions.stop", "bad_scope"): changed("sessions.stop", scope="gently"),
    on("search.sessions", "empty_query"): Scenario(search_for_nothing),
    on("chat.send", "session_not_found"): changed("chat.send", session_id=NOWHERE),
    on("chat.send", "chat_failed"): Scenario(chat_that_fails),
    on("chat.send", "shutting_down"): Scenario(chat_while_shutting_down, local=Local.FAULTS),
    on("chat.send", "queue_full"): Scenario(chat_into_a_full_queue),
    on("scheduling.run_later", "session_not_found"): changed("scheduling.run_later", session_id=NOWHERE),
    on("scheduling.run_later", "file_not_found"): Scenario(run_later_with_no_such_file),
    on("scheduling.run_later", "queue_full"): Scenario(run_into_a_full_queue),
    on("scheduling.run_later", "shutting_down"): Scenario(run_later_than_the_end, local=Local.FAULTS),
    on("queue.cancel", "queue_entry_not_found"): Scenario(cancel_what_is_not_there),
    on("queue.cancel", "already_started"): Scenario(cancel_what_runs),
    on("queue.cancel", "not_owner"): Scenario(cancel_what_somebody_else_sent),
}
