"""Each example of spec/ goes through its generated model and comes out unchanged."""

from typing import Any, get_args

import pytest
from spec_reader import CALLS, CLIENT, ERRORS, SERVER, TRANSCRIPTS, Call

from nerve.contract import codec
from nerve.contract.frames import decode_client_frame, encode_frame, encode_logged
from nerve.contract.generated.errors import ERRORS as DECLARED
from nerve.contract.generated.frames_client import CLIENT_FRAME_PARTS, CLIENT_FRAMES
from nerve.contract.generated.frames_server import SERVER_FRAME_PARTS, SERVER_FRAMES, LoggedFrame
from nerve.contract.generated.routes import ROUTES
from nerve.contract.route import NoBody, NoParams, ReplyKind
from nerve.contract.unset import UNSET

CALL = {call.id: call for call in CALLS}
ROUTE = {route.operation_id: route for route in ROUTES}
each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)


def same_again(model: Any, example: Any) -> Any:
    """What is left of the example after the model, through bytes as on the wire."""
    made = codec.structure(model, codec.parse_json(codec.encode_plain(example)), ())
    return codec.parse_json(codec.encode(made))


def test_the_route_table_is_the_spec() -> None:
    assert ROUTE.keys() == {call.id for call in CALLS}
    for call in CALLS:
        route = ROUTE[call.id]
        assert (route.method.lower(), route.path) == (call.method, call.path)
        assert [str(status) for status in route.replies] == list(call.raw["responses"])
        assert set(call.error_names()) <= route.errors.keys()


@each_call
def test_replies(call: Call) -> None:
    route = ROUTE[call.id]
    for part, media in call.contents():
        if part != "request" and route.kind is ReplyKind.JSON:
            assert same_again(route.replies[int(part)], media["example"]) == media["example"]


def test_each_reply_of_a_stop() -> None:
    (media,) = (media for part, media in CALL["sessions.stop"].contents() if part == "200")
    model = ROUTE["sessions.stop"].replies[200]
    for shape in media["schema"]["oneOf"]:
        for example in shape["examples"]:
            assert same_again(model, example) == example


@each_call
def test_requests(call: Call) -> None:
    """A request may come out with more: the defaults of what it left out."""
    route = ROUTE[call.id]
    examples = [media["example"] for part, media in call.contents() if part == "request"]
    assert bool(examples) is (route.body is not NoBody)
    for example in examples if call.takes == "application/json" else ():
        again = same_again(route.body, example)
        assert again.items() >= example.items()
        schema = call.raw["requestBody"]["content"]["application/json"]["schema"]
        assert again.keys() - example.keys() <= defaulted(schema)


def defaulted(schema: dict[str, Any]) -> set[str]:
    return {key for key, prop in schema["properties"].items() if "default" in prop}


@each_call
def test_parameters_are_read_from_text(call: Call) -> None:
    route, declared = ROUTE[call.id], call.raw.get("parameters", [])
    if not declared:
        assert route.params is NoParams
        return
    path = {p["name"]: "x%y/é" for p in declared if p["in"] == "path"}
    query = {p["name"]: "x%y/é" for p in declared if p["in"] != "path" and p.get("required")}
    bare = codec.decode_params(route.params, path, query)
    for parameter in declared:
        default = parameter["schema"].get("default", UNSET)
        value = getattr(bare, parameter["name"].replace("-", "_").lower())
        assert value == ("x%y/é" if parameter.get("required") else default)
    for name in query:
        with pytest.raises(codec.Invalid) as refused:
            codec.decode_params(route.params, path, {other: "x" for other in query if other != name})
        assert [problem.loc for problem in refused.value.problems] == [("query", name)]


@each_call
def test_query_numbers_are_clamped_and_words_are_refused(call: Call) -> None:
    route, declared = ROUTE[call.id], call.raw.get("parameters", [])
    path = {p["name"]: "x" for p in declared if p["in"] == "path"}
    for parameter in (p for p in declared if p["schema"]["type"] == "integer" and p["in"] == "query"):
        name, schema = parameter["name"], parameter["schema"]
        assert schema["x-clamp"] is True
        query = {p["name"]: "x" for p in declared if p["in"] == "query" and p.get("required")}
        for text, expected in (("-5", schema["minimum"]), ("9" * 40, schema["maximum"])):
            assert getattr(codec.decode_params(route.params, path, {**query, name: text}), name) == expected
        with pytest.raises(codec.Invalid) as refused:
            codec.decode_params(route.params, path, {**query, name: "many"})
        assert [problem.loc for problem in refused.value.problems] == [("query", name)]


CLIENT_EXAMPLES = [(name, e["payload"]) for name, frame in CLIENT.items() for e in frame["examples"]]
SERVER_EXAMPLES = [(name, e["payload"]) for name, frame in SERVER.items() for e in frame["examples"]]


def test_the_frames_are_those_of_the_spec() -> None:
    assert CLIENT_FRAMES.keys() == CLIENT.keys()
    assert SERVER_FRAMES.keys() == SERVER.keys()
    assert {name: frame["x-nerve"]["part"] for name, frame in CLIENT.items()} == CLIENT_FRAME_PARTS
    assert {name: frame["x-nerve"]["part"] for name, frame in SERVER.items()} == SERVER_FRAME_PARTS
    logged = {name for name, frame in SERVER.items() if frame["x-nerve"].get("logged")}
    assert set(get_args(LoggedFrame)) == {SERVER_FRAMES[name] for name in logged}


@pytest.mark.parametrize(("name", "payload"), CLIENT_EXAMPLES)
def test_client_frames(name: str, payload: dict[str, Any]) -> None:
    frame = decode_client_frame(codec.encode_plain({**payload, "of a newer client": 1}).decode())
    assert isinstance(frame, CLIENT_FRAMES[name])
    again = codec.parse_json(codec.encode(frame))
    assert again.items() >= payload.items()
    assert again.keys() - payload.keys() <= defaulted(CLIENT[name]["payload"])


@pytest.mark.parametrize(("name", "payload"), SERVER_EXAMPLES)
def test_server_frames(name: str, payload: dict[str, Any]) -> None:
    plain = {key: value for key, value in payload.items() if key != "seq"}
    frame = codec.structure(SERVER_FRAMES[name], plain, ())
    assert codec.parse_json(encode_frame(frame)) == plain
    if "seq" in payload:
        assert codec.parse_json(encode_logged(frame, payload["seq"])) == payload


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts(name: str) -> None:
    for step in TRANSCRIPTS[name]:
        if "server" in step:
            frame = step["server"]
            assert same_again(SERVER_FRAMES[frame["type"]], frame) == frame
        elif "client" in step:
            assert decode_client_frame(codec.encode_plain(step["client"]).decode()) is not None


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("message", {"content": ""}),
        ("message", {"content": 5}),
        ("message", {"client_msg_id": "x" * 201}),
        ("message", {"file_ids": "f_1"}),
        ("switch_session", {"after_seq": -1}),
        ("switch_session", {"after_seq": "7"}),
        ("switch_session", {"session_id": None}),
        ("answer_interaction", {"denied": "yes"}),
        ("answer_interaction", {"result": []}),
        ("fork", {"at_message_id": 42}),
    ],
)
def test_frames_that_do_not_fit_are_refused(name: str, broken: dict[str, Any]) -> None:
    payload = {**CLIENT[name]["examples"][0]["payload"], **broken}
    with pytest.raises(codec.Invalid) as refused:
        decode_client_frame(codec.encode_plain(payload).decode())
    assert [problem.loc[0] for problem in refused.value.problems] == list(broken)


def test_errors_are_those_of_the_spec() -> None:
    assert {code.value for code in DECLARED} == ERRORS.keys()
    for code, declared in DECLARED.items():
        written = ERRORS[code.value]
        assert declared.status == written["status"]
        assert declared.kind.value == written["kind"]
        assert declared.message == written["message"]
        assert declared.retry_after == written.get("retry_after")
