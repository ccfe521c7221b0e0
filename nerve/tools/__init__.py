"""The tools that every agent has, whichever runtime it runs on.

One tool a file and one line here; its description and schema stand in spec/tools under the same name.
"""

from nerve.tools import ask_form, schedule_wakeup
from nerve.tools.registry import Registry

BUILT_IN = Registry.of(
    ask_form.TOOL,
    schedule_wakeup.TOOL,
)

__all__ = ["BUILT_IN", "Registry"]
