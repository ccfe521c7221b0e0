"""Linux: descendants whose parent died become children of this process instead of init's."""

import ctypes
import sys

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """True once orphans below this process are adopted by it; False where the system knows no such thing."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
