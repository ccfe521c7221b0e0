"""What has to be there before anybody can be told apart (gaps.md 1.6).  Repeating it changes nothing."""

from datetime import datetime

import apsw
from attrs import field, frozen

from nerve.contract.generated.entities import ActorKind
from nerve.contract.route import AuthMode
from nerve.identity.directory import load
from nerve.store.accounts import CONFIG, ROW, add_account, all_accounts, set_credential_origin
from nerve.store.actors import SYSTEM_ACTOR, add_actor, has_actor
from nerve.store.instance import CLAIMED_AT, HOME_ID, SETUP_TOKEN, fact, forget_fact, set_fact

SYSTEM_NAME = "Nerve"
SETUP_TOKEN_BYTES = 32


@frozen
class Seed:
    """Fresh ids and secrets, for what is not there yet."""

    home_id: str
    actor_id: str
    account_id: str
    setup_token: str = field(repr=False)
    now: datetime


def bootstrap(db: apsw.Connection, seed: Seed, mode: AuthMode, configured_hash: str | None) -> str:
    """One transaction; the id of the home.  External mode gets no account: its people come from the gateway."""
    home_id = fact(db, HOME_ID)
    if home_id is None:
        home_id = seed.home_id
        set_fact(db, HOME_ID, home_id)
    if not has_actor(db, SYSTEM_ACTOR):
        add_actor(db, SYSTEM_ACTOR, ActorKind.SYSTEM.value, SYSTEM_NAME, seed.now)
    if mode is AuthMode.LOCAL:
        _first_account(db, seed, configured_hash)
        _setup_token(db, seed, configured_hash)
    return home_id


def _first_account(db: apsw.Connection, seed: Seed, configured_hash: str | None) -> None:
    rows = all_accounts(db)
    if not rows:
        add_actor(db, seed.actor_id, ActorKind.HUMAN.value, "", seed.now)
        add_account(db, seed.account_id, seed.actor_id, None, None, seed.now)
        rows = all_accounts(db)
    first = rows[0]
    if configured_hash is not None:
        if first.password_hash is None and first.credential_origin == ROW:
            set_credential_origin(db, first.id, CONFIG, seed.now)
    elif first.credential_origin == CONFIG and fact(db, CLAIMED_AT) is None:
        # The configured password is gone and nobody ever claimed: the claim is open again.
        set_credential_origin(db, first.id, ROW, seed.now)


def _setup_token(db: apsw.Connection, seed: Seed, configured_hash: str | None) -> None:
    if load(db, configured_hash).claimed:
        forget_fact(db, SETUP_TOKEN)
    elif fact(db, SETUP_TOKEN) is None:
        set_fact(db, SETUP_TOKEN, seed.setup_token)
