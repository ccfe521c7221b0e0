"""Configuration: the layers read into one frozen typed ``Config``, and the files of ``$NERVE_HOME`` it leads to.

The only reader of the environment.  Nothing here waits for anything but small local files.
"""

from nerve.config.config import Config, Paths
from nerve.config.environment import Environment
from nerve.config.findings import ConfigError, Finding, Kind
from nerve.config.layers import Layer, LayerName
from nerve.config.load import Loaded, default_config, load, load_from_process
from nerve.config.secret import Secret

__all__ = [
    "Config",
    "ConfigError",
    "Environment",
    "Finding",
    "Kind",
    "Layer",
    "LayerName",
    "Loaded",
    "Paths",
    "Secret",
    "default_config",
    "load",
    "load_from_process",
]
