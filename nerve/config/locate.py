"""Where the configuration is: home, config directory and its source, workspace (config.md 1 and 1.1)."""

from pathlib import Path

from attrs import frozen

from nerve.config import disk
from nerve.config.config import BASE_FILE, OVERLAY_FILE, ConfigDirSource
from nerve.config.environment import Variables
from nerve.config.findings import ConfigError, Kind


@frozen
class Place:
    home: Path
    config_dir: Path
    source: ConfigDirSource


def locate(flag_dir: Path | None, variables: Variables) -> Place:
    """Find home and config directory.  The current directory never counts.

    Raises ConfigError when the home or a directory that was named outright (flag, env) is something else, or when the
    one of the flag does not exist: whoever types a name means it.
    """
    home = variables.path("NERVE_HOME") or variables.user_home.absolute() / ".nerve"
    _refuse_other_than_directory(home, "NERVE_HOME")
    place = _search(home, flag_dir, variables)
    if place.source in ("flag", "env"):
        label = "--config-dir" if place.source == "flag" else "NERVE_CONFIG_DIR"
        _refuse_other_than_directory(place.config_dir, label)
        if not disk.is_there(place.config_dir):
            if place.source == "flag":
                raise ConfigError(f"{label}: {place.config_dir} does not exist")
            variables.findings.add(Kind.DOUBTFUL, label, "the directory does not exist, so no file is read from it")
    return place


def _search(home: Path, flag_dir: Path | None, variables: Variables) -> Place:
    if flag_dir is not None:
        return Place(home, flag_dir.absolute(), "flag")
    if (named := variables.path("NERVE_CONFIG_DIR")) is not None:
        return Place(home, named, "env")
    if (pointed := _pointed(home, variables)) is not None:
        return Place(home, pointed, "pointer")
    return Place(home, home, "home" if _holds_layer(home) else "default")


def _pointed(home: Path, variables: Variables) -> Path | None:
    """The directory that ``$NERVE_HOME/config_dir`` names, if it is absolute and holds a layer."""
    pointer = home / "config_dir"
    try:
        first, *_ = (disk.read_text(pointer) or "").strip().splitlines() or [""]
        named = Path(first)
        if named.is_absolute() and "\0" not in first and _holds_layer(named):
            return named
    except ConfigError as error:
        variables.findings.add(Kind.DOUBTFUL, "config_dir", f"the pointer is not followed: {error}")
    return None


def _holds_layer(directory: Path) -> bool:
    return any(disk.is_there(directory / name) for name in (BASE_FILE, OVERLAY_FILE))


def _refuse_other_than_directory(path: Path, label: str) -> None:
    if disk.is_there(path) and not disk.is_directory(path):
        raise ConfigError(f"{label}: {path} is not a directory")
