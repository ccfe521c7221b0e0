"""``nerve account`` on the database of a daemon that runs, and of one that doesn't."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.live.instance import Instance, eventually
from tests.soak.scale import only_whole, within

pytestmark = pytest.mark.slow

NOTICED_SECONDS = within(3.0)  # the daemon looks twice a second; the rest is for sign-ins on a busy machine


@pytest.fixture
def claimed(instance: Instance) -> Instance:
    instance.foreground()
    instance.claim()
    return instance


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One for all that is refused; without a daemon, which would refuse the same."""
    made = Instance(tmp_path_factory.mktemp("unchanged"))
    try:
        daemon = made.foreground()
        made.claim()
        daemon.terminate()
        daemon.wait(60)
        yield made
    finally:
        made.close()


def test_an_account_made_at_the_command_line_can_sign_in_and_is_listed(claimed: Instance) -> None:
    claimed.must("account", "create", "Ada", "--display-name", "Ada L.", stdin="first\n")
    eventually(lambda: claimed.login("ada", "first").status_code == 200, seconds=NOTICED_SECONDS)
    listed = json.loads(claimed.must("account", "list", "--json"))["accounts"]
    assert [(row["username"], row["enabled"], row["has_password"]) for row in listed] == [
        ("owner", True, True),
        ("ada", True, True),
    ]
    table = claimed.must("account", "list")
    assert "Ada L." in table
    assert "first" not in table


def test_a_new_password_counts_at_once_and_the_old_one_does_not(claimed: Instance) -> None:
    claimed.must("account", "set-password", "owner", stdin="another one\n")
    eventually(lambda: claimed.login("owner", "another one").status_code == 200, seconds=NOTICED_SECONDS)
    assert claimed.login("owner", "correct horse").status_code == 401


@pytest.mark.soak
@only_whole
def test_accounts_can_be_managed_while_the_daemon_is_down(claimed: Instance) -> None:
    claimed.must("stop")
    claimed.must("account", "create", "bob", stdin="pw\n")
    claimed.must("account", "disable", "bob")
    assert "disabled" in claimed.must("account", "list")
    claimed.must("account", "enable", "bob")
    claimed.foreground()
    assert claimed.login("bob", "pw").status_code == 200


@pytest.mark.parametrize(
    ("words", "stdin", "reason"),
    [
        (["disable", "owner"], "", "enabled account"),
        (["disable", "nobody"], "", "ccount"),
        (["create", "owner"], "pw\n", "has this username"),
        (["create", "not a name"], "pw\n", "sername"),
        (["create", "carl"], "\n", "assword"),
        (["create", "carl"], "x" * 73 + "\n", "72"),
    ],
)
def test_what_the_rules_refuse_is_one_line(unchanged: Instance, words: list[str], stdin: str, reason: str) -> None:
    done = unchanged.nerve("account", *words, stdin=stdin)
    assert done.returncode == 1
    assert done.stderr.startswith("nerve: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_before_the_claim_no_account_can_be_made(instance: Instance) -> None:
    instance.foreground().send_signal(signal.SIGTERM)
    done = instance.nerve("account", "create", "early", stdin="pw\n")
    assert done.returncode == 1
    assert "claim" in done.stderr.lower() or "setup" in done.stderr.lower()


def test_a_password_is_never_an_argument(instance: Instance) -> None:
    for command in ("create", "set-password"):
        assert (
            "password"
            not in instance.must("account", command, "--help").lower().replace("password is", "").split("options:")[1]
        )
