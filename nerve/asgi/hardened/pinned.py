"""The one version of Hypercorn that this package was written against.

It uses ``Config``, ``Sockets`` and the TLS context of Hypercorn and takes the place of its connection classes, which
are no public interface: another version may have other faults, or these cures may no longer fit.
"""

from importlib.metadata import version

HYPERCORN = "0.18.0"


class WrongHypercorn(ImportError):
    """Another version of Hypercorn is installed."""


def check(found: str | None = None) -> None:
    """Raises WrongHypercorn unless the installed version is the pinned one."""
    found = version("hypercorn") if found is None else found
    if found != HYPERCORN:
        raise WrongHypercorn(f"nerve needs Hypercorn {HYPERCORN}, exactly; {found} is installed")
