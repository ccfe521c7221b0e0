"""Child processes of agents: started with a mark, found by it, gone when asked to go (decisions D11-D13)."""

from nerve.processes.census import Seen
from nerve.processes.children import Child, Children, StillThere, open_children
from nerve.processes.marker import Marker, is_marker
from nerve.processes.subreaper import become_subreaper

__all__ = ["Child", "Children", "Marker", "Seen", "StillThere", "become_subreaper", "is_marker", "open_children"]
