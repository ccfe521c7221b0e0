"""The three layers: which of them count, what each may say about workspace and lockdown (config.md 1 and 6)."""

from enum import Enum
from pathlib import Path

from attrs import field, frozen

from nerve.config import coerce, disk
from nerve.config.config import BASE_FILE, OVERLAY_FILE
from nerve.config.environment import Variables
from nerve.config.findings import ConfigError, Kind, Unusable
from nerve.config.interpolate import Interpolation
from nerve.config.locate import Place
from nerve.config.merge import Tree, merge
from nerve.config.yaml_text import parse

DEFAULT_WORKSPACE = "nerve-workspace"


class LayerName(Enum):
    """Lowest first; the values are the display paths."""

    SETTINGS = "workspace/config/settings.yaml"
    BASE = "config.yaml"
    OVERLAY = "config.local.yaml"


@frozen
class Layer:
    """What one file says, references and all: who wrote a secret is judged on this.  Empty when there is no file."""

    name: LayerName
    path: Path
    values: Tree = field(repr=False)


@frozen
class Stack:
    """The layers that count, lowest first.  Under lockdown that is the first one alone."""

    workspace: Path
    locked: bool
    layers: tuple[Layer, ...]

    def merged(self) -> dict[str, object]:
        """Still holds references, and the tracked ``lockdown`` key."""
        tree: dict[str, object] = {}
        for layer in self.layers:
            tree = merge(tree, layer.values)
        return tree


def settings_path(workspace: Path) -> Path:
    return workspace / "config" / "settings.yaml"


def read_stack(place: Place, variables: Variables) -> Stack:
    """Read what counts.  Raises ConfigError on malformed files and on a lockdown that can't be honoured."""
    forced = _forced_lockdown(variables)
    workspace = variables.path("NERVE_WORKSPACE")
    if workspace is None:
        if forced:
            raise ConfigError("NERVE_LOCKDOWN needs NERVE_WORKSPACE: no file of this machine may name the workspace")
        machine = _read_machine(place, variables)
        workspace = _workspace(machine, place, variables)
        settings = _read_settings(workspace, variables, forced=False)
        locked = _settings_lock(settings, variables)
        return Stack(workspace, locked, (settings,) if locked else (settings, *machine))
    settings = _read_settings(workspace, variables, forced=forced)
    if forced or _settings_lock(settings, variables):
        return Stack(workspace, True, (settings,))
    machine = _read_machine(place, variables)
    for layer in machine:
        if "workspace" in layer.values:
            variables.findings.add(
                Kind.MISPLACED, f"{layer.name.value}: workspace", "ignored, NERVE_WORKSPACE names the workspace"
            )
    return Stack(workspace, False, (settings, *machine))


def _forced_lockdown(variables: Variables) -> bool:
    if (raw := variables.environ.get("NERVE_LOCKDOWN")) is None:
        return False
    try:
        return coerce.boolean(raw, empty=None)
    except Unusable:
        raise ConfigError("NERVE_LOCKDOWN: expected true or false; never taken as unlocked by accident") from None


def _settings_lock(settings: Layer, variables: Variables) -> bool:
    if "lockdown" not in settings.values:
        return False
    interpolation = Interpolation(variables.environ)
    raw = interpolation.apply(settings.values["lockdown"], "lockdown")
    if not interpolation.complete:
        # The key stays in the tree: the load fails on it together with all other variables that are not set.
        return False
    try:
        return coerce.boolean(raw, empty=None)
    except Unusable:
        raise ConfigError("lockdown: expected true or false; never taken as unlocked by accident") from None


def _workspace(machine: tuple[Layer, ...], place: Place, variables: Variables) -> Path:
    """Where the machine layers put it.  A value that can't be used refuses: another place would be the wrong one."""
    tree: Tree = {}
    for layer in machine:
        tree = merge(tree, layer.values)
    interpolation = Interpolation(variables.environ)
    raw = interpolation.apply(tree.get("workspace"), "workspace")
    if not interpolation.complete:
        complete = Interpolation(variables.environ)
        complete.apply(tree)
        complete.require()
    try:
        rules = coerce.PathRules(variables.user_home, variables.environ)
        path = None if raw is None else rules.path(raw, place.config_dir)
    except Unusable as error:
        raise ConfigError(f"workspace: expected {error.expected}") from None
    return path or variables.user_home.absolute() / DEFAULT_WORKSPACE


def _read_settings(workspace: Path, variables: Variables, *, forced: bool) -> Layer:
    path = settings_path(workspace)
    if forced:
        refuse_outside(path, workspace)
    values = _read(path)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: its top level is not a mapping")
    if "workspace" in values:
        variables.findings.add(
            Kind.MISPLACED, f"{LayerName.SETTINGS.value}: workspace", "ignored, the file lies in the workspace itself"
        )
        del values["workspace"]
    return Layer(LayerName.SETTINGS, path, values)


def _read_machine(place: Place, variables: Variables) -> tuple[Layer, ...]:
    layers = []
    for name, file_name in ((LayerName.BASE, BASE_FILE), (LayerName.OVERLAY, OVERLAY_FILE)):
        path = place.config_dir / file_name
        values = _read(path)
        if not isinstance(values, dict):
            variables.findings.add(Kind.LAYER, name.value, "its top level is not a mapping; the file is ignored")
            values = {}
        if "lockdown" in values:
            variables.findings.add(
                Kind.MISPLACED, f"{name.value}: lockdown", "ignored, only the tracked settings or NERVE_LOCKDOWN lock"
            )
            del values["lockdown"]
        layers.append(Layer(name, path, values))
    if disk.others_may_read(layers[-1].path):
        variables.findings.add(Kind.DOUBTFUL, LayerName.OVERLAY.value, "others may read it; its mode should be 0600")
    return tuple(layers)


def _read(path: Path) -> object:
    source = disk.read_text(path)
    parsed = parse(source, str(path)) if source is not None and source.strip() else None
    return {} if parsed is None else parsed


def refuse_outside(path: Path, workspace: Path) -> None:
    """Under lockdown what is read lies in the reviewed ``<workspace>/config``, links followed."""
    if not disk.resolves_inside(path, disk.resolved(workspace) / "config"):
        raise ConfigError(f"lockdown: {path} leads out of the workspace's config directory")
