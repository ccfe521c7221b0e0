"""``${VAR}``: every form of config.md 1.2, as a table and as properties."""

import pytest
from config_house import House, unhurried
from hypothesis import given
from hypothesis import strategies as st

from nerve.config import ConfigError
from nerve.config.interpolate import Interpolation, references

ENVIRON = {"NAME": "value", "EMPTY": "", "TRICK": "${NAME} $$ $NAME", "_x9": "under"}


def interpolate(text: object, environ: dict[str, str] | None = None) -> object:
    interpolation = Interpolation(ENVIRON if environ is None else environ)
    result = interpolation.apply(text)
    interpolation.require()
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${NAME}", "value"),
        ("a${NAME}b${NAME}", "avaluebvalue"),
        ("${EMPTY}", ""),
        ("${_x9}", "under"),
        ("${NAME:-other}", "value"),
        ("${EMPTY:-other}", "other"),
        ("${GONE:-other}", "other"),
        ("${GONE:-}", ""),
        ("${GONE:-a $NAME $$ b}", "a $NAME $$ b"),
        ("${GONE:-${NAME}}", "${NAME}"),
        ("${GONE:-two\nlines}", "two\nlines"),
        ("$$", "$"),
        ("$$$$", "$$"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$value"),
        ("${}", "${}"),
        ("$NAME", "$NAME"),
        ("${NAME", "${NAME"),
        ("${9}", "${9}"),
        ("${NAME:+x}", "${NAME:+x}"),
        ("${na-me}", "${na-me}"),
        ("$", "$"),
        ("${TRICK}", "${NAME} $$ $NAME"),
        ("no reference", "no reference"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert interpolate(text) == expected


def test_every_string_scalar_and_no_key() -> None:
    tree = {"${NAME}": ["${NAME}", 5, None, True, {"k": "${NAME}"}]}
    assert interpolate(tree) == {"${NAME}": ["value", 5, None, True, {"k": "value"}]}


def test_all_missing_names_at_once_with_the_keys_that_want_them(house: House) -> None:
    house.settings("agent: {model: '${ONE}', models: [x, '${TWO}']}\nunheard: '${THREE}'\n")
    house.overlay("openai_api_key: ${ONE}\ntelegram: {bot_token: '${SET}'}\n")
    with pytest.raises(ConfigError) as caught:
        house.load(SET="a-very-secret-token")
    assert str(caught.value) == (
        "the configuration refers to variables that are not set: "
        "ONE (for agent.model, openai_api_key), THREE (for unheard), TWO (for agent.models[1])"
    )


def test_a_replaced_value_needs_no_variable(house: House) -> None:
    house.settings("timezone: ${NEVER_SET}\n")
    house.base("timezone: Europe/Berlin\n")
    assert house.config().timezone == "Europe/Berlin"


def test_a_missing_name_of_the_workspace_is_listed_with_those_of_its_layers(house: House) -> None:
    house.base("workspace: ${WHERE}\ngithub_token: ${TOKEN}\n")
    with pytest.raises(ConfigError, match=r"TOKEN \(for github_token\), WHERE \(for workspace\)"):
        house.load()


def test_a_missing_name_of_lockdown_is_an_error_and_not_unlocked(house: House) -> None:
    house.settings("lockdown: ${LOCK}\n")
    house.base("openai_api_key: ${KEY}\n")
    with pytest.raises(ConfigError, match=r"KEY \(for openai_api_key\), LOCK \(for lockdown\)"):
        house.load()


def test_a_variable_that_is_no_text_is_refused_without_its_value() -> None:
    with pytest.raises(ConfigError, match=r"^the variable NAME is not UTF-8 text$"):
        interpolate("${NAME}", {"NAME": "secret\udcff"})


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
PLAIN = st.text(st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=20)


@unhurried
@given(PLAIN)
def test_text_without_a_dollar_is_untouched(text: str) -> None:
    assert interpolate(text, {}) == text


@unhurried
@given(st.text(max_size=30))
def test_doubling_each_dollar_escapes_anything(text: str) -> None:
    assert interpolate(text.replace("$", "$$"), {}) == text


@unhurried
@given(PLAIN, NAMES, PLAIN, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_the_value_stands_where_the_reference_stood_and_is_not_scanned_again(
    before: str, name: str, after: str, value: str
) -> None:
    assert interpolate(f"{before}${{{name}}}{after}", {name: value}) == before + value + after


@unhurried
@given(st.text(alphabet="${}:-aB_9 ", max_size=25), st.dictionaries(NAMES, PLAIN, max_size=3))
def test_never_anything_but_a_text_or_the_list_of_missing_names(text: str, environ: dict[str, str]) -> None:
    interpolation = Interpolation(environ)
    assert isinstance(interpolation.apply(text, "key"), str)
    if interpolation.complete:
        interpolation.require()
    else:
        with pytest.raises(ConfigError) as caught:
            interpolation.require()
        assert all(
            name in str(caught.value) for name in references(text) if f"${{{name}}}" in text and name not in environ
        )
        assert "\n" not in str(caught.value)


def test_references_are_found_for_whoever_asks_where_a_value_came_from() -> None:
    assert list(references({"a": "${ONE} $$ ${TWO:-x}", "b": ["$NO", "${ONE}"]})) == ["ONE", "TWO", "ONE"]
