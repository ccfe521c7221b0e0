"""What models charge for what they say, in USD per million tokens (sessions-and-agents.md 8): for estimates only."""

# A part of the model's name, the most particular first.
OUTPUT = (
    ("fable-5", 50.0),
    ("opus-5", 25.0),
    ("opus-4-5", 25.0),
    ("opus-4-6", 25.0),
    ("opus-4-7", 25.0),
    ("opus-4-8", 25.0),
    ("opus-4", 75.0),
    ("sonnet-5", 15.0),
    ("sonnet-4", 15.0),
    ("haiku-5", 5.0),
    ("haiku-4-5", 5.0),
    ("haiku-3-5", 4.0),
)
UNKNOWN = 25.0


def output_cost(model: str | None, tokens: int) -> float:
    """USD for so many tokens of output; a model that nobody knows is priced as Opus."""
    price = next((price for part, price in OUTPUT if part in (model or "")), UNKNOWN)
    return tokens * price / 1_000_000
