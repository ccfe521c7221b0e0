"""What every handler is handed.  Frozen and short: adding a field is a design conversation."""

from attrs import field, frozen

from nerve.config.config import Config
from nerve.effects import Effects
from nerve.identity.service import Identity
from nerve.runtime.hub import Hub
from nerve.runtime.supervisor import Supervisor
from nerve.store.database import Database
from nerve.store.kept import KeptReads


@frozen(kw_only=True)
class Services:
    """Made by the composition root."""

    config: Config
    effects: Effects
    database: Database
    identity: Identity
    supervisor: Supervisor
    hub: Hub
    kept: KeptReads = field(factory=KeptReads, init=False)  # for inline reads of ``database``
    generation: str = field()  # names this process (contract chapter Health)

    @generation.default
    def _new_generation(self) -> str:
        return self.effects.new_id("generation")
