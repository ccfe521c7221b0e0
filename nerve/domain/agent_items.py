"""Cutting what a transcript shows of tools, at a number of bytes and never within a character."""

from typing import Any

import orjson


def cut(text: str, max_bytes: int) -> tuple[str, int]:
    """``text`` in at most ``max_bytes`` of UTF-8, and how many bytes it had."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text, len(data)
    return data[:max_bytes].decode("utf-8", "ignore"), len(data)


def cut_input(tool_input: dict[str, Any], max_bytes: int) -> tuple[dict[str, Any], int | None]:
    """The input of a tool in at most so many bytes of values, and its whole size in bytes as JSON if it was cut.

    Texts are cut, other values that find no room are left out.
    """
    size = len(_json(tool_input))
    if size <= max_bytes:
        return tool_input, None
    room, kept = max_bytes, {}
    for key, value in tool_input.items():
        room -= len(key.encode("utf-8", "replace"))
        if room <= 0:
            break
        if isinstance(value, str):
            kept[key], whole = cut(value, room)
            room -= min(whole, room)
        elif (needed := len(_json(value))) <= room:
            kept[key] = value
            room -= needed
    return kept, size


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
