"""What every part of the runtime works with, as one frozen value."""

import trio
from attrs import field, frozen

from nerve.effects import Effects
from nerve.runtime.backends import Backends
from nerve.runtime.hub import Hub
from nerve.runtime.limits import Limits
from nerve.runtime.wakeups import Schedule
from nerve.store.database import Database

SYSTEM_ACTOR = "act_system"


@frozen(eq=False)
class House:
    database: Database
    hub: Hub
    effects: Effects
    backends: Backends
    limits: Limits = field(factory=Limits)
    schedule: Schedule = field(init=False)
    slots: trio.CapacityLimiter = field()  # turns at once, over all sessions
    comparing: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1))  # files with their snapshots

    @schedule.default
    def _schedule(self) -> Schedule:
        return Schedule(self.database, self.effects)

    @slots.default
    def _slots(self) -> trio.CapacityLimiter:
        return trio.CapacityLimiter(self.limits.max_concurrent)
