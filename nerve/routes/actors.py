"""Contract chapter Actors."""

from nerve.contract.caller import Caller
from nerve.contract.generated.actors import ACTORS_LIST, ActorList
from nerve.contract.route import NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services


async def list_actors(services: Services, caller: Caller, params: NoParams, body: NoBody) -> ActorList:
    return ActorList(actors=services.identity.actors())


ENDPOINTS = (bind(ACTORS_LIST, list_actors),)
