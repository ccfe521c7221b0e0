"""An authenticated schemathesis run over the document that the server serves: nothing found.

Left out are the operations that would lock the runner out, and the one whose reply never ends.  Of schemathesis' checks
two are left out.  ``negative_data_rejection``: some numbers are clamped to the bounds of their schema, by promise.
``positive_data_acceptance``: no schema says which names are taken, or which sessions may go.
"""

import json
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance
from tests.soak.scale import WHOLE, amount, only_whole
from tests.spec_replies import BY_ID, find, modes_of

pytestmark = [pytest.mark.soak, pytest.mark.slow, only_whole]

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / ".venv-soak" / "bin" / "schemathesis"
HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
EXAMPLES_EACH = amount(sample=4, whole=100)
RUN_SECONDS = amount(sample=600, whole=2400)  # of patience

LOCKS_OUT = {"accounts.disable", "accounts.change_password"}  # neither a restart nor a logout is an operation
ENDLESS = {"sessions.stream"}
CHECKS = [
    *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"),
    *("response_headers_conformance", "ignored_auth", "unsupported_method", "allow_header_conformance"),
    *("missing_required_header", "use_after_free", "ensure_resource_availability"),
]
# What the examples of spec/ sign in with.
SIGN_IN = BY_ID["auth.login"].raw["requestBody"]["content"]["application/json"]["example"]
TESTED = {call.id for call in BY_ID.values() if "local" in modes_of(call)} - LOCKS_OUT - ENDLESS
NEED_THINGS = {
    *("agents.get", "agents.output", "agents.stop", "agents.transcript"),
    *("files.diff", "files.download", "files.uploaded"),
}
PLAY = """#!nerve-scenario
- {write: report.txt, content: It is done.}
- {shell: server, command: make serve, output: [listening], seconds: 3600}
"""
# No entry waits where the runner would look for one: these are told 404 only.
OUT_OF_REACH = {"queue.cancel"}
ACCESS = re.compile(r"nerve\.access: ([A-Z]+) (\S+) (\d{3}) ")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    if not RUNNER.exists():
        pytest.skip("schemathesis is not installed (python tools/set_up.py soak; make soak does it)")
    made = Instance(tmp_path)
    try:
        made.foreground()
        yield made
    finally:
        made.close()


def run(
    instance: Instance, token: str, document: dict[str, Any], *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Schemathesis on this server.  From a file: it would leave the address out that a document was loaded from."""
    path = instance.root / "openapi.json"
    path.write_text(json.dumps(document))
    return subprocess.run(
        [
            *(str(RUNNER), "run", str(path), "--url", instance.address),
            *("--header", f"Authorization: Bearer {token}", "--checks", ",".join(CHECKS)),
            *("--no-color", "--generation-database", "none", "--request-timeout", "30", *arguments),
        ],
        cwd=instance.root,
        env={**instance.env, "SCHEMATHESIS_HOOKS": HOOKS.stem, "PYTHONPATH": str(HOOKS.parent)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def shown(done: "subprocess.CompletedProcess[str]") -> str:
    """The end of what it said, without lines that fill the screen."""
    return "\n".join(line[:500] for line in done.stdout.splitlines())[-20_000:]


def served(instance: Instance, token: str) -> dict[str, Any]:
    answer = instance.http("GET", "/openapi.json", token)
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def with_examples(document: dict[str, Any], things: dict[str, str]) -> dict[str, Any]:
    """The runner can't know what there is: of operations on a session's agents and files it is told one each."""
    for operation_id in NEED_THINGS:
        call = BY_ID[operation_id]
        for parameter in document["paths"][call.path][call.method]["parameters"]:
            if parameter["name"] in things:
                parameter["example"] = things[parameter["name"]]
    return document


def made_things(instance: Instance, token: str) -> dict[str, str]:
    """A session with a changed file and a background shell, and an upload: by the names of parameters."""

    def asked(method: str, path: str, **how: Any) -> Any:
        answer = instance.http(method, path, token, **how)
        assert answer.status_code == 200, answer.text
        return answer.json()

    session_id = asked("POST", "/api/sessions", json={})["id"]
    asked("POST", "/api/chat", json={"session_id": session_id, "message": PLAY})
    (agent,) = asked("GET", f"/api/sessions/{session_id}/agents")["agents"]
    (changed,) = asked("GET", f"/api/sessions/{session_id}/modified-files")["files"]
    (upload,) = asked("POST", "/api/files/upload", files={"files": ("plan.txt", b"plan")})["files"]
    return {"session_id": session_id, "agent_id": agent["id"], "path": changed["path"], "file_id": upload["id"]}


def answered(instance: Instance) -> dict[str, set[int]]:
    """The statuses that each operation has answered with."""
    found: dict[str, set[int]] = defaultdict(set)
    for method, path, status in ACCESS.findall(instance.log):
        resource = find("local", path)
        if resource is not None and method in resource.calls:
            found[resource.calls[method].id].add(int(status))
    return found


def test_nothing_is_found(instance: Instance, rng: random.Random, say: Callable[[str], None]) -> None:
    token = instance.claim(SIGN_IN["username"], SIGN_IN["password"])
    excluded = [word for each in sorted(LOCKS_OUT | ENDLESS) for word in ("--exclude-operation-id", each)]
    how = ("--max-examples", str(EXAMPLES_EACH), "--seed", str(rng.randrange(1 << 32)))
    document = with_examples(served(instance, token), made_things(instance, token))
    done = run(instance, token, document, *excluded, *how)
    assert done.returncode == 0, shown(done)
    assert f"Tested: {len(TESTED)}" in done.stdout
    assert not re.search(r" ERROR |Traceback", instance.log)
    assert instance.http("GET", "/api/auth/check", token).status_code == 200, "the runner was locked out"

    statuses = answered(instance)
    assert statuses.keys() >= TESTED
    guarded = {operation_id for operation_id in TESTED if BY_ID[operation_id].nerve["auth"] != "open"}
    assert [operation_id for operation_id in guarded - OUT_OF_REACH if 401 not in statuses[operation_id]] == []
    if WHOLE:
        assert [each for each in TESTED - OUT_OF_REACH if min(statuses[each]) >= 300] == [], "never seen to succeed"
    cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert cases is not None
    assert cases[1] == cases[2]
    say(f"schemathesis: {len(TESTED)} operations, {cases[1]} cases, nothing found")


def test_the_run_would_find_something(instance: Instance) -> None:
    """The same run against a document that says other than the server does."""
    token = instance.claim()
    document = served(instance, token)
    health = document["paths"]["/health"]["get"]["responses"]["200"]["content"]["application/json"]
    health["schema"] = {"type": "object", "required": ["uptime"]}
    document["paths"]["/docs"]["get"]["security"] = [{"bearer": []}]
    del document["paths"]["/api/auth/me"]["get"]["responses"]["200"]
    changed = [word for each in ("health.get", "meta.docs", "auth.me") for word in ("--include-operation-id", each)]
    done = run(instance, token, document, *changed, "--max-examples", "2")
    assert done.returncode == 1, shown(done)
    for told in ("GET /health", "GET /docs", "GET /api/auth/me"):
        assert f"_ {told} _" in done.stdout, told
