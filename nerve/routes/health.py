"""Contract chapter Health: three keys, for anybody, without a look at any table (decisions D24)."""

from nerve import __version__
from nerve.contract.caller import Caller
from nerve.contract.generated.entities import Health
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.route import NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services


async def health(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Health:
    return Health(version=__version__, generation=services.generation)


ENDPOINTS = (bind(HEALTH_GET, health),)
