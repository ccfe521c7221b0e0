"""A session's placeholder title: the first words of its first message (sessions-and-agents.md 6)."""

LONGEST = 40


def first_words(text: str) -> str:
    """At most 40 characters, cut at a word, with ``...`` when something was left out; empty for blank text."""
    line = " ".join(text.split())
    if len(line) <= LONGEST:
        return line
    head = line[: LONGEST + 1]
    cut = head.rfind(" ")
    return (head[:cut] if cut > 0 else head[:LONGEST]) + "..."
