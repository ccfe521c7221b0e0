"""Reading plays: YAML within bounds, the schema with its errors as decisions D50 wants them, the limits."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from nerve.adapters.protocol import Usage
from nerve.adapters.scripted.document import load
from nerve.adapters.scripted.play import parse_play, parse_scenario_file
from nerve.adapters.scripted.problem import PlayError
from nerve.adapters.scripted.steps import (
    AddUsage,
    AskQuestions,
    Crash,
    EditFile,
    Fail,
    Play,
    ProposePlan,
    RequestApproval,
    Say,
    ServeModel,
    SpawnAgent,
    Think,
    Unmap,
    UseTool,
    Wait,
)

SPEC = Path(__file__).parents[2] / "spec" / "plays" / "play.yaml"

EXAMPLES = SPEC.parent / "examples"
EXAMPLE = (EXAMPLES / "agent-in-the-background.yaml").read_text("utf-8")
EVERY_STEP = (EXAMPLES / "every-step.yaml").read_text("utf-8")


def problem(text: str) -> str:
    with pytest.raises(PlayError) as caught:
        parse_play(text)
    return str(caught.value)


def test_the_package_holds_the_schema_of_the_spec() -> None:
    packaged = json.loads((files("nerve.contract") / "documents" / "play.schema.json").read_text("utf-8"))
    assert packaged == YAML(typ="safe", pure=True).load(SPEC)


def test_the_example_of_the_chapter_is_a_play() -> None:
    play = parse_play(EXAMPLE)
    assert play.steps[0] == Think("/steps/0", "I need two helpers.", 0)
    agent = play.steps[1]
    assert isinstance(agent, SpawnAgent)
    assert (agent.name, agent.background, agent.result) == ("build-api", True, "The API is built.")
    assert agent.steps == (
        UseTool("/steps/1/steps/0", "Bash", {"command": "pytest -q"}, ("212 passed",), "212 passed", False, 5),
    )
    assert play.on_settled == (Say("/on_settled/0", "The API is ready.", 0),)


def test_every_step_of_the_format_is_known() -> None:
    steps = parse_play(EVERY_STEP).steps
    assert len(steps) == 25
    assert steps[2] == UseTool("/2", "Bash", {"a": [1, {"b": None}]}, ("a",), "r", True, 1.5)
    assert steps[5] == EditFile("/5", "a", "b", "c")
    questions = (
        {"question": "q", "header": "h", "options": [{"label": "l", "description": "d"}], "multiSelect": True},
    )
    assert steps[10] == AskQuestions("/10", questions)
    assert steps[12] == ProposePlan("/12", "p", (ProposePlan("/12/revise/0", "q", ()),))
    assert steps[13] == RequestApproval("/13", "file", {"path": "x"})
    assert steps[15] == AddUsage("/15", Usage(1, 2, 3, 4, 0.5, 5, 6))
    assert steps[16] == ServeModel("/16", "m", True)
    assert steps[21:] == (Fail("/21", "f"), Crash("/22", False), Crash("/23", True), Unmap("/24"))


def test_defaults() -> None:
    assert parse_play("- tool: Bash\n- say: x").steps == (
        UseTool("/0", "Bash", {}, (), "", False, 0),
        Say("/1", "x", 0),
    )
    assert parse_play("[]") == Play(())
    assert parse_play("steps: []\non_settled: []") == Play((), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- say: hi\n- dance: 3", "/1: unknown step 'dance'"),
        ("steps:\n- say: hi\n- dance: 3", "/steps/1: unknown step 'dance'"),
        ("- agent: a\n  steps: [{say: x}, {dance: 1}]", "/0/steps/1: unknown step 'dance'"),
        ("- {plan: a, revise: [{dance: 1}]}", "/0/revise/0: unknown step 'dance'"),
        ("- dance: 3\n- jump: 4", "/0: unknown step 'dance'"),
        ("- say: 3\n- jump: 4", "/0: 'say' must be text"),
        ("- {}", "/0: a step needs a name"),
        ("- say", "/0: must be a mapping"),
        ("- {say: x, tool: y}", "/0: the step 'say' has no field 'tool'"),
        ("- {say: x, speed: 1}", "/0: the step 'say' has no field 'speed'"),
        ("- {edit: a, old: b}", "/0: the step 'edit' needs 'new'"),
        ("- {write: a}", "/0: the step 'write' needs 'content'"),
        ("- {agent: a, model: ''}", "/0: 'model' must not be empty"),
        ("- {say: x, pace: fast}", "/0: 'pace' must be a number"),
        ("- wait: -1", "/0: 'wait' must be at least 0"),
        ("- wait: true", "/0: 'wait' must be a number"),
        ("- crash: 1", "/0: 'crash' must be true or silent"),
        ("- unmapped: false", "/0: 'unmapped' must be true"),
        ("- usage: {input_tokens: -1}", "/0/usage: 'input_tokens' must be at least 0"),
        ("- usage: {input_tokens: 1.5}", "/0/usage: 'input_tokens' must be a whole number"),
        ("- usage: {tokens: 1}", "/0/usage: 'usage' has no field 'tokens'"),
        ("- {tool: x, output: [a, 1]}", "/0/output/1: must be text"),
        ("- {tool: x, input: [a]}", "/0: 'input' must be a mapping"),
        ("- ask: [{header: x}]", "/0/ask/0: an entry of 'ask' needs 'question'"),
        ("- {agent: a, ends: never}", "/0: 'ends' must be completed or failed or vanished"),
        ("- {tool: x, a/b~c: 1}", "/0: the step 'tool' has no field 'a/b~c'"),
        ('- "da\\n nce": 1', "/0: unknown step 'da nce'"),
        (f"- {{say: x, {'y' * 300}: 1}}", f"/0: the step 'say' has no field '{'y' * 100}...'"),
        (f"- model: {'m' * 201}", "/0: 'model' must be at most 200 characters long"),
        ("- usage: {cost_usd: 1e9}", "/0/usage: 'cost_usd' must be at most 1000000"),
        ("- {shell: s, run: []}", "/0: 'run' must not be empty"),
        (f"- ask: [{'{question: q},' * 21}]", "/0: 'ask' must have at most 20 entries"),
        ("- usage: {}", "/0: 'usage' must not be empty"),
        ("- ask: [[]]", "/0/ask/0: must be a mapping"),
        ("- say: {a: b}", "/0: 'say' must be text"),
        ("- wait: !!int x", "not a YAML int (line 1, column 9)"),
        ("- wait: !seconds 3", "only YAML's own tags are known (line 1, column 9)"),
        ('- say: "\\ud83d"', "half a surrogate pair is no text (line 1, column 8)"),
        ("- {[a]: b}", "a key must be plain text (line 1, column 4)"),
        ('- say: "\\U99999999"', "not valid YAML"),
        ("- say: \x00", "not valid YAML: unacceptable character #x0000: special characters are not allowed"),
        ("just text", "a play must be a list of steps, or a mapping with 'steps'"),
        ("on_settled: []", "a play needs 'steps'"),
        ("steps: []\nmatch: x", "a play has no field 'match'"),
        ("steps: x", "'steps' must be a list"),
        ("", "the play is empty"),
        (
            "#!nerve-scenario\n- say: [",
            "not valid YAML (line 2, column 9): expected the node content, but found '<stream end>'",
        ),
        ("- say: a\n- say: b\n  say: c", "the key 'say' is there twice (line 3, column 3)"),
        ("- say: a\n---\n- say: b", "a play is one YAML document"),
        ("- say: *a", "unknown alias (line 1, column 8)"),
        ("- &a [*a]", "an alias inside its own anchor (line 1, column 7)"),
        ("- !!python/name:os.system x", "only YAML's own tags are known (line 1, column 3)"),
        ("- wait: .inf", "a number must be finite (line 1, column 9)"),
        ("- wait: 1e999", "a number must be finite (line 1, column 9)"),
        ("- usage: {input_tokens: 9999999999999999999}", "a number has at most 18 digits (line 1, column 25)"),
    ],
)
def test_an_error_names_the_place_and_the_reason(text: str, said: str) -> None:
    assert problem(text) == said


@pytest.mark.slow
def test_limits_are_reached_but_not_passed() -> None:
    def nested(depth: int) -> str:
        return "".join(f"{'  ' * 2 * level}- agent: a\n{'  ' * 2 * level}  steps:\n" for level in range(depth)) + (
            "  " * 2 * depth + "- say: x\n"
        )

    parse_play("- unmapped: true\n" * 1000)
    assert problem("- unmapped: true\n" * 1001) == "/1000: a play has at most 1,000 steps"
    halves = "- unmapped: true\n" * 500
    parse_play(f"steps:\n{halves}on_settled:\n{halves}")
    assert (
        problem(f"steps:\n{halves}on_settled:\n{halves}- say: x") == "/on_settled/500: a play has at most 1,000 steps"
    )
    parse_play("- agent: x\n" * 200)
    assert problem("- agent: x\n" * 201) == "/200: a play has at most 200 agents"
    parse_play(nested(8))
    assert problem(nested(9)) == "/0" + "/steps/0" * 8 + ": steps nest at most 8 deep"


@pytest.mark.parametrize(
    ("fits", "too_long"),
    [
        ("- wait: 3600", "- wait: 3601"),
        ("- wait: 1800\n- stuck: 1800", "- wait: 1800\n- stuck: 1801"),
        ("- {tool: x, seconds: 3600}", "- {tool: x, seconds: 3600}\n- wait: 1"),
        ("- {say: a b c, pace: 1800}", "- {say: a b c d, pace: 1800}"),
        (
            "- {agent: a, background: true, steps: [wait: 3600]}\n- wait: 3600",
            "- {agent: a, steps: [wait: 3600]}\n- wait: 1",
        ),
        ("- {shell: a, seconds: 3600}\n- wait: 3600", "- {shell: a, seconds: 3600, background: false}\n- wait: 1"),
    ],
)
def test_a_play_lasts_at_most_an_hour(fits: str, too_long: str) -> None:
    parse_play(fits)
    assert problem(too_long).endswith(": a play lasts at most one hour in all")


def test_the_size_is_counted_in_bytes() -> None:
    parse_play("- say: x #" + "y" * (256 * 1024 - 10))
    assert problem("- say: x #" + "y" * (256 * 1024 - 9)) == "a play is at most 256 KiB"
    assert problem("- say: x #" + "é" * (128 * 1024)) == "a play is at most 256 KiB"


def test_aliases_are_counted_as_what_they_stand_for() -> None:
    assert parse_play("- &a {say: hi}\n- *a").steps == (Say("/0", "hi", 0), Say("/1", "hi", 0))
    values = "- tool: x\n  input:\n    a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"    {name}: &{name} [{','.join(['*' + before] * 10)}]\n"
        for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    assert problem(values) == "a play holds at most 50,000 values"
    text = f"- tool: x\n  input:\n    a: &a {'y' * 100_000}\n    b: [{','.join(['*a'] * 11)}]"
    assert problem(text) == "a play holds at most 1 MiB of text, its aliases written out"


@pytest.mark.slow
@pytest.mark.parametrize("bomb", ["[" * 100_000, "- " * 100_000, "? " * 100_000, "[a: " * 60_000, "{a: " * 60_000])
def test_depth_is_bounded(bomb: str) -> None:
    with pytest.raises(PlayError):
        parse_play(bomb)


def test_scalars_are_those_of_the_core_schema() -> None:
    assert load(
        "[1, -2, 0x1F, 0o17, .5, 1e3, ~, null, '', true, False, yes, 2001-01-01, '5', !!str 5, ! 5, \"\\ud83d\\ude00\"]"
    ) == [
        *(1, -2, 31, 15, 0.5, 1000.0, None, None, "", True, False, "yes", "2001-01-01", "5", "5", "5", "😀"),
    ]
    assert load("{&k a: 1, b: *k, c: !!float 3, d: !!null ''}") == {"a": 1, "b": "a", "c": 3.0, "d": None}
    assert load("{1: a, null: b, true: c}") == {"1": "a", "null": "b", "true": "c"}


def test_a_scenario_file_needs_its_expression() -> None:
    file = parse_scenario_file("match: ^hi\nsteps: [{say: x}]\non_settled: [{say: y}]")
    assert file.match == "^hi"
    assert file.play == Play((Say("/steps/0", "x", 0),), (Say("/on_settled/0", "y", 0),))
    for text, said in [
        ("steps: []", "a play needs 'match'"),
        ("match: 3\nsteps: []", "'match' must be text"),
        ("- say: x", "a play must be a list of steps, or a mapping with 'steps'"),
    ]:
        with pytest.raises(PlayError) as caught:
            parse_scenario_file(text)
        assert str(caught.value) == said


# --- two readers, one promise --------------------------------------------------------------------------------------

WORDS = [
    "say",
    "tool",
    "dance",
    "agent",
    "usage",
    "model",
    "wait",
    "steps",
    "pace",
    "input",
    "content",
    "write",
    "crash",
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from(["x", "", "silent"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=2),
    max_leaves=5,
)
whole_steps = load(EVERY_STEP)
keys = sorted({key for step in whole_steps for key in step})


@st.composite
def nearly_steps(draw: st.DrawFn) -> dict[str, Any]:
    """A step as it should be, in half of the cases with one key left out, added or given another value."""
    step = dict(draw(st.sampled_from(whole_steps)))
    match draw(st.sampled_from(["keep", "keep", "keep", "drop", "add", "change"])):
        case "drop":
            del step[draw(st.sampled_from(sorted(step)))]
        case "add":
            step[draw(st.sampled_from(keys))] = draw(json_values)
        case "change":
            step[draw(st.sampled_from(sorted(step)))] = draw(json_values)
    return step


documents = st.lists(nearly_steps(), max_size=3)
independent = jsonschema.Draft202012Validator(YAML(typ="safe", pure=True).load(SPEC))


@pytest.mark.slow
@given(documents)
@settings(max_examples=300, deadline=None)
def test_what_the_schema_allows_is_read_and_nothing_else(document: list[dict[str, Any]]) -> None:
    text = json.dumps(document)
    if independent.is_valid(document):
        assert len(parse_play(text).steps) == len(document)
    else:
        problem(text)


TOKENS = [
    *"[]{}:,-?&*!|>'\"%@`#\n \\",
    "- ",
    ": ",
    "  ",
    "---",
    "...",
    "&a",
    "*a",
    "!!",
    "%YAML",
    "say",
    "\\u",
    "\\x",
    "\x00",
    "é",
    "\u2028",
    "1e9",
]


@pytest.mark.slow
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join) | st.text(max_size=60))
@settings(max_examples=500, deadline=None)
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    refusal: PlayError | None = None
    try:
        parse_play(text)
    except PlayError as error:
        refusal = error
    assert refusal is None or (str(refusal) and "\n" not in str(refusal))


@given(json_values)
@settings(deadline=None)
def test_json_reads_as_itself(value: Any) -> None:
    assert load(json.dumps(value)) == value


def test_wait_accepts_whole_numbers() -> None:
    assert parse_play("- wait: 1").steps == (Wait("/0", 1),)
