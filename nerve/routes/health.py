"""Contract chapter Health: touches no table, so that it answers whatever else is wrong (decisions D24)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import Health
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.route import NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services

VERSION = "0.1.0"  # fixed by the contract; says nothing about the build


async def get_health(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Health:
    return Health(version=VERSION, generation=services.generation)


ENDPOINTS = (bind(HEALTH_GET, get_health),)
