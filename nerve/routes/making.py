"""How handlers make sessions."""

from nerve.runtime.creation import SessionMaker
from nerve.services import Services


def session_maker(services: Services) -> SessionMaker:
    config = services.config
    return SessionMaker(services.database, services.supervisor, services.effects, config.workspace, config.paths.home)
