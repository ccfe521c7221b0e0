"""The rules that need no house: names, passwords, failures, peers, hashes, tokens."""

import bcrypt
import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nerve.contract.caller import CredentialKind
from nerve.errors import NerveError
from nerve.identity.failures import OF_ONE_NAME, OF_ONE_PEER, WINDOW_SECONDS, Failures
from nerve.identity.naming import RESERVED, checked_username, fits_bcrypt
from nerve.identity.passwords import cost_of, decoy
from nerve.identity.peers import household, is_loopback
from nerve.identity.tokens import mint_mcp, mint_session, mint_system, read_actor_context, read_token
from tests.identity.identity_house import SECRET, START, signed

unhurried = settings(deadline=None, max_examples=150)
brief = settings(deadline=None, max_examples=60)
NOW = START.timestamp()


@unhurried
@given(st.text(max_size=40))
def test_a_checked_username_is_stored_in_one_form(given_name: str) -> None:
    try:
        name = checked_username(given_name)
    except NerveError:
        return
    assert checked_username(name) == name
    assert name.isascii()
    assert name == given_name.strip().lower()
    assert name not in RESERVED
    assert 1 <= len(name) <= 32


@unhurried
@given(st.text(max_size=80))
def test_what_fits_bcrypt_is_never_cut(password: str) -> None:
    assert fits_bcrypt(password) == (len(password.encode("utf-8", "surrogatepass")) <= 72)


# --- failures


def count_failures(failures: Failures, times: list[float], peer: str = "p", name: str = "n") -> None:
    for moment in times:
        failures.failed(peer, name, moment)


@unhurried
@given(st.lists(st.tuples(st.floats(0, 4 * WINDOW_SECONDS), st.sampled_from("abcdefghijklmnopqrstuvwxyz"))))
def test_failures_agree_with_counting_them_all(events: list[tuple[float, str]]) -> None:
    """Whatever is forgotten to stay bounded makes no difference."""
    failures = Failures()
    events.sort()
    for seen, (moment, name) in enumerate(events, start=1):
        failures.failed("p", name, moment)
        recent = [other for at, other in events[:seen] if moment - at < WINDOW_SECONDS]
        for asked in "abz":
            expected = recent.count(asked) >= OF_ONE_NAME or len(recent) >= OF_ONE_PEER
            assert failures.slowed("p", asked, moment) == expected
        assert not failures.slowed("q", name, moment)


def test_a_window_ends_exactly() -> None:
    failures = Failures()
    count_failures(failures, [0.0, 1.0, 2.0, 3.0, 4.0])
    assert failures.slowed("p", "n", WINDOW_SECONDS - 0.001)
    assert not failures.slowed("p", "n", WINDOW_SECONDS)


def test_a_success_clears_its_pair_only() -> None:
    failures = Failures()
    count_failures(failures, [0.0] * 5)
    count_failures(failures, [0.0] * 5, name="other")
    failures.succeeded("p", "n")
    failures.succeeded("nobody", "n")
    assert not failures.slowed("p", "n", 1.0)
    assert failures.slowed("p", "other", 1.0)


def test_a_name_that_fails_again_is_not_the_one_that_is_forgotten() -> None:
    failures = Failures()
    count_failures(failures, [0.0])
    for number in range(19):
        count_failures(failures, [1.0 + number], name=f"other {number}")
    count_failures(failures, [895.0] * 5)
    count_failures(failures, [896.0], name="one too many")
    assert not failures.slowed("p", "somebody", 950.0)
    assert failures.slowed("p", "n", 950.0)


def test_the_number_of_peers_is_bounded() -> None:
    failures = Failures(peers=3)
    for number in range(4):
        count_failures(failures, [0.0] * 5, peer=f"p{number}")
    assert [failures.slowed(f"p{number}", "n", 1.0) for number in range(4)] == [False, True, True, True]


# --- peers


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_who_counts_as_one_peer(peer: str, expected: str) -> None:
    assert household(peer) == expected


@pytest.mark.parametrize(
    ("peer", "expected"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("::ffff:127.0.0.1", True)]
    + [(peer, False) for peer in ("192.0.2.1", "::2", "0.0.0.0", "localhost", "", "127.0.0.1:80")],
)
def test_loopback(peer: str, expected: bool) -> None:
    assert is_loopback(peer) is expected


# --- hashes


def test_a_decoy_costs_what_it_says_and_opens_nothing() -> None:
    for cost in (4, 5):
        assert cost_of(decoy(cost)) == cost
        assert not bcrypt.checkpw(b"", decoy(cost).encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$2b$12$" + "a" * 53, 12),
        ("$2a$10$" + "./" * 26 + "A", 10),
        ("$2y$04$" + "a" * 53, 4),
        ("$2b$03$" + "a" * 53, None),
        ("$2b$17$" + "a" * 53, None),
        ("$2b$12$" + "a" * 52, None),
        ("$2b$12$" + "a" * 53 + "\n", None),
        ("$2x$12$" + "a" * 53, None),
        ("$argon2id$v=19$m=65536", None),
        ("password", None),
        ("", None),
    ],
)
def test_what_is_a_usable_hash(text: str, expected: int | None) -> None:
    assert cost_of(text) == expected


# --- tokens


def test_what_is_minted_is_read_again() -> None:
    session = read_token(SECRET, mint_session(SECRET, "acc_1", START, 720))
    system = read_token(SECRET, mint_system(SECRET, START))
    tool = read_token(SECRET, mint_mcp(SECRET, "a1b2c3d4", START, 24))
    assert session is not None
    assert system is not None
    assert tool is not None
    assert (session.kind, session.subject) == (CredentialKind.SESSION, "acc_1")
    assert (session.issued_at, session.expires_at) == (NOW, NOW + 720 * 3600)
    assert (system.kind, system.expires_at - NOW) == (CredentialKind.SYSTEM, 300)
    assert (tool.kind, tool.session_id) == (CredentialKind.MCP, "a1b2c3d4")
    assert all(claims.valid_at(NOW) and not claims.valid_at(claims.expires_at) for claims in (session, system, tool))


@brief
@given(st.text(max_size=200) | st.from_regex(r"[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}"))
def test_hostile_text_is_no_token(text: str) -> None:
    assert read_token(SECRET, text) is None
    assert read_actor_context(SECRET, text) is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["session", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@brief
@given(st.dictionaries(st.sampled_from(["typ", "sub", "aud", "iat", "exp", "name", "nerve_session_id"]), VALUES))
def test_a_well_signed_token_of_any_shape_is_read_or_refused(payload: dict[str, object]) -> None:
    """Another program may hold the secret: whatever it signs, reading never fails in another way."""
    token = signed(payload)
    for claims in (read_token(SECRET, token), read_actor_context(SECRET, token)):
        if claims is not None:
            assert isinstance(payload["exp"], int | float)
            assert claims.valid_at(NOW) in (True, False)
            assert claims.past_half(NOW) in (True, False)


@pytest.mark.parametrize("payload", [b"[]", b"1", b"null", b'"x"', b"", b"{", b"[" * 2500, b"\xff", b"9" * 900])
def test_a_signed_payload_that_is_no_object(payload: bytes) -> None:
    token = jwt.PyJWS().encode(payload, SECRET, "HS256")
    assert read_token(SECRET, token) is None
    assert read_actor_context(SECRET, token) is None
