"""`nerve chat` and `nerve token` at a terminal, before anything is said: who is there?"""

import pytest

from tests.cli.terminals import PASSWORD, House, begun, nerve
from tests.live.instance import Instance
from tests.soak.scale import only_whole

pytestmark = pytest.mark.slow


@pytest.mark.req("CLAIM-35")
def test_an_unclaimed_instance_is_claimed_on_the_way(instance: Instance) -> None:
    instance.foreground()
    with nerve(instance, "chat") as program:
        program.see("Claim it now? [Y/n]")
        program.type("\r")
        program.see("Your username [owner]")
        program.type("ada\r")
        program.see("A password:")
        program.type("my secret\r")
        program.see("Repeat for confirmation:")
        program.type("my secret\r")
        program.see("It is yours now, ada.")
        begun(program)
        program.type("\x04")
        assert program.ended() == 0
        assert "my secret" not in program.screen
    assert instance.login("ada", "my secret").status_code == 200


def test_who_does_not_claim_it_is_told_how(instance: Instance) -> None:
    instance.foreground()
    with nerve(instance, "chat", "hello") as program:
        program.see("Claim it now?")
        program.type("n\r")
        assert program.ended() == 1
        assert "nerve status" in program.screen


@pytest.mark.soak
@only_whole
def test_another_machines_setup_token_is_asked_for(instance: Instance, house: House) -> None:
    """The token of the own home is never sent to somebody else's server."""
    instance.foreground()
    token = instance.status()["setup_token"]
    with nerve(house.instance, "chat", "--url", instance.address) as program:
        program.see("Claim it now?")
        program.type("\r")
        program.see("Setup token")
        program.type(f"{token}\r")
        program.see("Your username")
        program.type("\r")
        program.see("A password:")
        program.type("pw\r")
        program.see("Repeat")
        program.type("pw\r")
        begun(program)
        assert token not in program.screen


def test_a_password_is_asked_for_up_to_three_times(house: House) -> None:
    with nerve(house.instance, "chat") as program:
        for number, password in enumerate(["wrong", PASSWORD], start=1):
            program.see(lambda screen, number=number: screen.count("Password:") == number)
            program.type(f"{password}\r")
        begun(program)
        assert "Invalid username or password" in program.screen
        assert PASSWORD not in program.screen
        program.type("/quit\r")
        assert program.ended() == 0


@pytest.mark.soak
@only_whole
def test_with_several_accounts_the_name_is_asked_for(instance: Instance) -> None:
    instance.foreground()
    instance.claim(password=PASSWORD)
    instance.must("account", "create", "bob", stdin="pw\n")
    with nerve(instance, "token") as program:
        program.see("Username:")
        program.type("bob\r")
        program.see("Password:")
        program.type("pw\r")
        assert program.ended() == 0
