"""Who did something, and on whose behalf (gaps.md section 4): ids or None, never names."""

from attrs import frozen

from nerve.contract.caller import Caller


@frozen
class Attribution:
    actor_id: str | None
    cause_id: str | None


def of(caller: Caller) -> Attribution:
    return Attribution(caller.actor_id, caller.cause_id)
