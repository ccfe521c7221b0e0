"""Contract chapter Setup: the claim."""

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import Token
from nerve.contract.generated.setup import SETUP_CLAIM, Claim
from nerve.contract.route import NoParams
from nerve.routes.binding import bind
from nerve.services import Services


async def claim(services: Services, caller: Caller, params: NoParams, body: Claim) -> Token:
    """Answers once the account and the completion of setup are stored together."""
    return await services.identity.claim(body)


ENDPOINTS = (bind(SETUP_CLAIM, claim),)
