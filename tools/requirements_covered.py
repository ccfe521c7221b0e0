"""Which requirements of spec/requirements.md a test names with ``@pytest.mark.req``.

python -m tools.requirements_covered [AREA ...]

Without areas: how many of each area.  With areas: the ids that no test names, with their sentences.  A name is where to
look for a proof, not the proof.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = re.compile(r"- \[.\] \*\*(?P<id>(?P<area>[A-Z]{2,6})-\d{2,3})\*\* (?P<text>.*)")
ID = re.compile(r"[A-Z]{2,6}-\d{2,3}")


def wanted() -> dict[str, dict[str, str]]:
    """Area to id to sentence, as spec/requirements.md lists them."""
    areas: dict[str, dict[str, str]] = {}
    for line in (ROOT / "spec" / "requirements.md").read_text(encoding="utf-8").splitlines():
        if found := REQUIREMENT.match(line):
            areas.setdefault(found["area"], {})[found["id"]] = found["text"]
    return areas


def named() -> set[str]:
    """Every id in a ``req`` mark below tests/."""
    return {text for path in (ROOT / "tests").rglob("*.py") for text in _marks(path) if ID.fullmatch(text)}


def _marks(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="req"), args=arguments):
                yield from (a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str))


def main() -> int:
    areas, marked, chosen = wanted(), named(), sys.argv[1:]
    if unknown := [area for area in chosen if area not in areas]:
        print(f"no such area: {', '.join(unknown)}", file=sys.stderr)
        return 2
    if stray := sorted(marked - {id for ids in areas.values() for id in ids}):
        print(f"marked, but not in spec/requirements.md: {', '.join(stray)}", file=sys.stderr)
        return 1
    for area in chosen:
        for id, text in areas[area].items():
            if id not in marked:
                print(f"{id}  {text}")
    if not chosen:
        for area, ids in areas.items():
            print(f"{area:8}{len(ids.keys() & marked):5} of {len(ids)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
