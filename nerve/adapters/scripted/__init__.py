"""The scripted runtime (spec/plays/play.yaml): an agent runtime whose model is a small play."""

from nerve.adapters.scripted.adapter import ScriptedAdapter
from nerve.adapters.scripted.source import BadScenario, check_scenarios

__all__ = ["BadScenario", "ScriptedAdapter", "check_scenarios"]
