"""spec/ keeps its own rules: it parses, its schemas are sound, its examples fit, its names are used."""

import re
from string import Formatter
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from spec_reader import (
    CALLS,
    CLIENT,
    COMMON,
    ENTITIES,
    ERRORS,
    INFO,
    ROOT,
    SERVER,
    TRANSCRIPTS,
    complaints,
    frame_complaints,
    load,
    payload_schema,
    walk,
)

# decisions D55
LOGGED = {
    "token",
    "thinking",
    "tool_use",
    "tool_output",
    "tool_result",
    "done",
    "stopped",
    "error",
    "auto_turn",
    "wakeup",
    "user_message",
    "answer_injected",
    "interaction",
    "interaction_resolved",
    "plan_update",
    "plan_summary",
    "workflow_progress",
    "file_changed",
    "model_changed",
    "backend_status",
}
# marked global in the contract's WebSocket chapter
GLOBAL = {
    "session_running",
    "session_agents",
    "workflow_run_update",
    "review_loop_update",
    "task_updated",
    "session_awaiting_input",
    "notification",
    "notification_answered",
    "notification_expired",
}
# sentences that the contract fixes
FIXED = {
    "bad_credentials": "Invalid username or password",
    "setup_incomplete": "Setup of this instance is not complete; claim it first.",
}
FRAMES = {"client": CLIENT, "server": SERVER}
FRAME_CASES = [(side, name) for side, frames in FRAMES.items() for name in frames]
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
INSTANT_LIKE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")

by_id = {call.id: call for call in CALLS}
each_call = pytest.mark.parametrize("call", CALLS, ids=by_id)
each_frame = pytest.mark.parametrize(("side", "name"), FRAME_CASES)


def schemas_of_everything() -> dict[str, dict[str, Any]]:
    found = {f"schemas/{name}": schema for name, schema in ENTITIES.items()}
    for call in CALLS:
        found |= {f"{call.id} {part}": media["schema"] for part, media in call.contents()}
        found |= {f"{call.id} {p['name']}": p["schema"] for p in call.raw.get("parameters", [])}
    for side, name in FRAME_CASES:
        found[f"{side} {name}"] = FRAMES[side][name]["payload"]
    return found


SCHEMAS = schemas_of_everything()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.yaml")), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_parses(path: Any) -> None:
    assert load(path)


@pytest.mark.parametrize("where", SCHEMAS)
def test_every_schema_is_json_schema_2020_12(where: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[where])


@pytest.mark.parametrize("where", SCHEMAS)
def test_every_object_states_its_additional_properties(where: str) -> None:
    for inner, schema in walk(SCHEMAS[where]):
        kinds = schema.get("type")
        if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
            assert "additionalProperties" in schema, f"{where}{inner}"


@pytest.mark.parametrize("where", SCHEMAS)
def test_requests_are_open_and_answers_are_closed(where: str) -> None:
    is_request = where.endswith(" request") or where.startswith("client ")
    for inner, schema in walk(SCHEMAS[where]):
        if schema.get("type") == "object" and "properties" in schema:
            assert schema["additionalProperties"] is is_request, f"{where}{inner}"


@pytest.mark.parametrize("where", SCHEMAS)
def test_inline_objects_and_enums_have_a_title(where: str) -> None:
    named_already = where.startswith(("schemas/", "client ", "server "))
    for at, schema in walk(SCHEMAS[where]):
        if named_already and not at:
            continue
        if (schema.get("type") == "object" and "properties" in schema) or "enum" in schema:
            assert "title" in schema, f"{where}{at}"


def test_references_resolve_and_every_entity_is_used() -> None:
    used: set[str] = set()
    for where, schema in SCHEMAS.items():
        for _, inner in walk(schema):
            if "$ref" in inner:
                prefix, _, name = inner["$ref"].rpartition("/")
                assert prefix == "#/components/schemas", where
                assert name in ENTITIES, f"{where}: {name}"
                used.add(name)
    assert used == ENTITIES.keys()


@each_call
def test_examples_of_operations_fit(call: Any) -> None:
    for part, media in call.contents():
        assert "example" in media, part
        assert complaints(media["schema"], media["example"]) == [], part


def test_examples_inside_schemas_fit() -> None:
    shown = 0
    for where, schema in SCHEMAS.items():
        for inner, node in walk(schema):
            for example in node.get("examples", []):
                shown += 1
                assert complaints(node, example) == [], f"{where}{inner}"
    assert shown >= 3  # one for each scope of a stop


@each_call
def test_a_surprising_key_in_a_reply_is_caught(call: Any) -> None:
    for part, media in call.contents():
        if part != "request" and call.nerve.get("reply", "json") == "json":
            assert complaints(media["schema"], {**media["example"], "surprise": 1}), part


@each_frame
def test_examples_of_frames_fit(side: str, name: str) -> None:
    frame = FRAMES[side][name]
    assert frame["name"] == name
    assert frame["payload"]["properties"]["type"] == {"const": name}
    assert frame["examples"]
    for example in frame["examples"]:
        assert complaints(payload_schema(frame), example["payload"]) == [], example["name"]


@each_frame
def test_a_surprising_key_is_caught_from_the_server_and_ignored_from_a_client(side: str, name: str) -> None:
    frame = FRAMES[side][name]
    found = complaints(payload_schema(frame), {**frame["examples"][0]["payload"], "surprise": 1})
    assert bool(found) is (side == "server")


@each_frame
def test_every_key_of_a_frame_is_shown_by_an_example(side: str, name: str) -> None:
    frame = FRAMES[side][name]
    shown = {key for example in frame["examples"] for key in example["payload"]}
    assert frame["payload"]["properties"].keys() <= shown


def test_instants_in_examples_have_the_one_form() -> None:
    def texts(value: Any) -> list[str]:
        if isinstance(value, str):
            return [value]
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [text for child in children for text in texts(child)]

    shown: list[Any] = [media.get("example") for call in CALLS for _, media in call.contents()]
    shown += [FRAMES[side][name]["examples"] for side, name in FRAME_CASES]
    shown += TRANSCRIPTS.values()
    instants = [text for text in texts(shown) if INSTANT_LIKE.match(text)]
    assert instants
    assert [text for text in instants if not INSTANT.fullmatch(text)] == []


def test_operation_ids_are_area_and_verb_and_unique() -> None:
    assert len(by_id) == len(CALLS)
    for call in CALLS:
        assert re.fullmatch(rf"{call.area}\.[a-z]+(_[a-z]+)*", call.id)


@each_call
def test_path_parameters_are_declared(call: Any) -> None:
    declared = [p["name"] for p in call.raw.get("parameters", []) if p["in"] == "path"]
    assert declared == re.findall(r"\{(\w+)\}", call.path)


@each_call
def test_policies_are_known_words(call: Any) -> None:
    nerve = call.nerve
    assert nerve.keys() <= {"auth", "refusal", "modes", "work", "part", "errors", "without", "host", "reply"} | {
        "body",
        "body_limit",
    }
    assert nerve["auth"] in {"open", "any", "person"}
    assert nerve["work"] in {"read", "write", "check", "stream"}
    assert nerve.get("reply", "json") in {"json", "html", "document", "event_stream", "file"}
    assert set(nerve.get("modes", ["local"])) <= {"local", "external"}
    assert isinstance(nerve["part"], int)
    assert nerve.get("body", "stream") == "stream"
    assert (call.takes in (None, "application/json")) is ("body" not in nerve)
    assert ("body" in nerve) is ("body_limit" in nerve)
    assert ("refusal" in nerve) <= (nerve["auth"] == "person")
    assert call.method == "get" or nerve["work"] != "read"


def test_tags_are_described() -> None:
    described = {tag["name"] for tag in INFO["tags"]}
    assert described == {tag for path in (ROOT / "rest").glob("*.yaml") for tag in load(path)["tags"]}


def test_every_error_that_is_named_is_declared_and_the_other_way_round() -> None:
    named = {name for call in CALLS for name in call.error_names()}
    named |= {call.nerve["refusal"] for call in CALLS if "refusal" in call.nerve}
    named |= {name for group in COMMON["groups"] for name in group["errors"]} - {"refusal"}
    named |= set(COMMON["before_routing"])
    if any(call.nerve["auth"] == "person" and "refusal" not in call.nerve for call in CALLS):
        named.add("person_required")
    later = {"person_required"}  # the default refusal, which operations of later parts use
    assert named - ERRORS.keys() == set()
    assert ERRORS.keys() - named - later == set()


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_well_formed(name: str) -> None:
    error = ERRORS[name]
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
    assert error.keys() <= {"status", "kind", "message", "retry_after", "varies", "extra"}
    assert 400 <= error["status"] < 600
    assert error["kind"] in {"detail", "field", "code", "reason", "validation"}
    assert error["message"][0].isupper()
    assert all(field is None or field.isidentifier() for _, field, _, _ in Formatter().parse(error["message"]))
    if error["status"] in (429, 503):
        assert "retry_after" in error or name == "backend_unavailable"


@pytest.mark.parametrize(("name", "sentence"), FIXED.items())
def test_sentences_of_the_contract_are_verbatim(name: str, sentence: str) -> None:
    assert ERRORS[name]["message"] == sentence


def test_errors_of_the_agents_chapter_have_a_code() -> None:
    for call in CALLS:
        if call.id in ("sessions.stop", "queue.list", "queue.cancel"):
            stated = {next(iter(e)): e for e in call.nerve["errors"] if isinstance(e, dict)}
            for name in call.error_names():
                kind = stated.get(name, {}).get(name) or call.errors_as or ERRORS[name]["kind"]
                assert kind == "code", f"{call.id}: {name}"


def test_sentences_tell_errors_of_one_status_apart() -> None:
    for call in CALLS:
        told = [(ERRORS[name]["status"], ERRORS[name]["message"]) for name in call.error_names()]
        assert len(told) == len(set(told)), call.id


@pytest.mark.parametrize("name", sorted(ENTITIES.keys() - {"TurnUsage", "WorkflowTree"}))
def test_entities_have_every_key_always(name: str) -> None:
    """Two may lack keys: what a turn reported of itself, and a workflow without a summary."""
    assert ENTITIES[name].get("required", []) == list(ENTITIES[name].get("properties", {}))


def test_a_list_row_is_a_session_with_more() -> None:
    session, row = ENTITIES["Session"]["properties"], ENTITIES["SessionRow"]["properties"]
    assert session.items() <= row.items()


def test_numbered_frames_are_those_that_were_decided() -> None:
    assert {name for name, frame in SERVER.items() if frame["x-nerve"].get("logged")} == LOGGED
    for frame in SERVER.values():
        assert "seq" not in frame["payload"]["properties"]


def test_audiences() -> None:
    assert {n for n, f in SERVER.items() if f["x-nerve"]["audience"] == "global"} == GLOBAL
    assert {f["x-nerve"]["audience"] for f in SERVER.values()} == {"session", "global", "sender"}
    assert all(SERVER[name]["x-nerve"]["audience"] == "session" for name in LOGGED)


@each_frame
def test_frames_say_which_part_brings_them(side: str, name: str) -> None:
    part = FRAMES[side][name]["x-nerve"]["part"]
    assert part == "later" or isinstance(part, int)


EVERYTHING: dict[str, Any] = {
    "errors": ERRORS,
    "schemas": ENTITIES,
    "client": CLIENT,
    "server": SERVER,
    **{call.id: call.raw for call in CALLS},
}


def test_no_sentence_was_cut_at_a_comma() -> None:
    """In a flow mapping an unquoted comma ends the text, and what follows becomes a key without a value."""
    for where, root in EVERYTHING.items():
        for inner, node in walk(root):
            empty = [key for key, value in node.items() if value is None and key not in ("const", "default")]
            assert empty == [], f"{where}{inner}"


def test_descriptions_are_short() -> None:
    for where, root in EVERYTHING.items():
        for inner, node in walk(root):
            summary, text = node.get("summary"), node.get("description")
            if isinstance(summary, str):
                assert len(summary) <= 110, f"{where}{inner}"
                assert summary.endswith("."), f"{where}{inner}"
            if isinstance(text, str):
                assert len(text) <= 360, f"{where}{inner}"
                assert text.endswith((".", ":")), f"{where}{inner}"


# --- transcripts


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_frames_of_transcripts_fit(name: str) -> None:
    for step in TRANSCRIPTS[name]:
        (side,) = step
        assert side in {"open", "closed", "client", "server"}
        if side in ("client", "server"):
            assert frame_complaints(side, step[side]) == [], step


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts_bind_in_order(name: str) -> None:
    steps = TRANSCRIPTS[name]
    for index, step in enumerate(steps):
        if "open" in step or step.get("client", {}).get("type") == "switch_session":
            switched, status = steps[index + 1]["server"], steps[index + 2]["server"]
            assert (switched["type"], status["type"]) == ("session_switched", "session_status")
            assert switched["session_id"] == status["session_id"] == status["agents"]["session_id"]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_numbers_of_transcripts_grow_and_what_is_missing_is_told(name: str) -> None:
    """Within one bind numbers grow; one that is left out is the socket's own user_message or told by a gap."""
    last = 0
    own: int = 0
    for step in TRANSCRIPTS[name]:
        frame = step.get("server", {})
        if step.get("client", {}).get("type") == "message":
            own += 1
        if frame.get("type") == "session_status":
            buffered = [f["seq"] for f in frame.get("buffered_events", [])]
            assert buffered == sorted(set(buffered))
            asked = last_bind(step, TRANSCRIPTS[name])
            last = frame["last_seq"] if asked is None else asked
            assert not buffered or buffered[-1] == frame["last_seq"]
        elif frame.get("type") == "gap":
            last = frame["from_seq"] - 1 if frame.get("reset") else frame["to_seq"]
        elif "seq" in frame:
            left_out = frame["seq"] - last - 1
            assert 0 <= left_out <= own, frame
            own -= left_out
            last = frame["seq"]


def last_bind(step: dict[str, Any], steps: list[dict[str, Any]]) -> int | None:
    """The after_seq of the bind that ``step`` (a session_status) answers."""
    index = next(i for i, s in enumerate(steps) if s is step)
    for before in reversed(steps[:index]):
        if "open" in before:
            found = re.search(r"after_seq=(\d+)", before["open"])
            return int(found.group(1)) if found else None
        if before.get("client", {}).get("type") == "switch_session":
            return before["client"].get("after_seq")
    raise AssertionError("no bind before a session_status")


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_every_message_of_a_transcript_is_acknowledged(name: str) -> None:
    steps = TRANSCRIPTS[name]
    for index, step in enumerate(steps):
        if step.get("client", {}).get("type") == "message":
            answer = next(s["server"] for s in steps[index + 1 :] if s.get("server", {}).get("type") == "queue_update")
            told = [*answer["queue"], *answer.get("removed", [])]
            assert step["client"]["client_msg_id"] in [entry["client_msg_id"] for entry in told]
