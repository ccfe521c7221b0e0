"""Rewrites the committed contract package from spec/; with --check only says whether it is up to date.

python tools/generate_contract.py [--check]
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.contract.docs_page import page  # noqa: E402
from tools.contract.documents import asyncapi, openapi  # noqa: E402
from tools.contract.render import render  # noqa: E402
from tools.contract.spec import Spec, SpecError, read_spec  # noqa: E402


def outputs(spec: Spec) -> dict[Path, str]:
    contract = ROOT / "nerve" / "contract"
    files = {contract / "generated" / name: source for name, source in render(spec).items()}
    documents = {"openapi.json": openapi(spec), "asyncapi.json": asyncapi(spec)}
    if spec.plays is not None:
        documents["play.schema.json"] = spec.plays
    documents["tools.json"] = spec.tools
    for name, document in documents.items():
        files[contract / "documents" / name] = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    files[contract / "documents" / "docs.html"] = page(spec)
    return files


def main() -> int:
    try:
        wanted = outputs(read_spec(ROOT / "spec"))
    except SpecError as exc:
        print(f"spec/: {exc}", file=sys.stderr)
        return 1
    folders = {path.parent for path in wanted}
    existing = {path for folder in folders for path in folder.glob("*") if path.is_file()}
    stale = sorted(existing - wanted.keys())
    changed = sorted(p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text)
    if "--check" in sys.argv[1:]:
        for path in [*changed, *stale]:
            print(f"out of date: {path.relative_to(ROOT)} (run `make contract`)", file=sys.stderr)
        return 1 if changed or stale else 0
    for path in stale:
        path.unlink()
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    print(f"contract: {len(changed)} of {len(wanted)} files rewritten, {len(stale)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
