"""Layers laid over each other (config.md section 1): mappings merge key by key, anything else replaces."""

from collections.abc import Mapping

# What a layer holds after parsing: text, numbers, booleans and None, in lists and string-keyed mappings.
Tree = Mapping[str, object]


def merge(lower: Tree, higher: Tree) -> dict[str, object]:
    """Neither argument is changed.  A key whose value is empty leaves a mapping below it alone.

    ``gateway:`` with nothing under it is a heading, not a wish to drop the settings of the layer below; over a
    list or scalar an empty value replaces, which brings the default back.
    """
    merged = dict(lower)
    for key, value in higher.items():
        below = merged.get(key)
        if isinstance(below, Mapping):
            if value is None:
                continue
            if isinstance(value, Mapping):
                merged[key] = merge(below, value)
                continue
        merged[key] = value
    return merged
