"""Makes .venv and installs one of the lock files into it, every package checked against its hash, and this project.

python tools/set_up.py runtime|dev|soak

``soak`` makes .venv-soak instead, without this project: schemathesis needs an older jsonschema-rs than Nerve does.

Needs nothing but Python: no make, no uv, no compiler.  A second run with the same lock file is a look at one file.
"""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
SOAK_VENV = ROOT / ".venv-soak"
OLDEST = (3, 11)
# An index that does not answer must not look like a set-up that goes on for ever.
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--timeout", "30"]


class SetUpFailed(Exception):
    """The set-up can't go on; the text is the one line that says why."""


def set_up(which: str) -> None:
    """Blocks until the environment has what ``requirements/<which>.lock`` lists.  Raises SetUpFailed."""
    directory = SOAK_VENV if which == "soak" else VENV
    python = directory / "bin" / "python"
    lock = ROOT / "requirements" / f"{which}.lock"
    stamp = directory / f".nerve-{which}"
    wanted = _fingerprint(lock)
    if _usable(python) and _written(stamp) == wanted:
        return
    if not _usable(python):
        print(f"Making {directory.name} ...", file=sys.stderr, flush=True)
        _make_venv(directory)
    print(f"Installing what {lock.relative_to(ROOT)} lists into {directory.name} ...", file=sys.stderr, flush=True)
    stamp.unlink(missing_ok=True)
    _run(python, [*PIP, "--require-hashes", "-r", str(lock)])
    if which != "soak":
        _run(python, [*PIP, "--no-deps", "-e", str(ROOT)])
    stamp.write_text(wanted + "\n", encoding="ascii")


def _make_venv(directory: Path) -> None:
    try:
        venv.create(directory, clear=directory.exists(), with_pip=True)
    except subprocess.CalledProcessError:
        raise SetUpFailed(
            "this Python can't make an environment with pip; install its venv and ensurepip modules "
            "(on Debian and Ubuntu: the package python3-venv)"
        ) from None
    except OSError as error:
        raise SetUpFailed(f"{directory} can't be made: {error.strerror}") from None


def _usable(python: Path) -> bool:
    """Whether an environment has a Python that still runs, is new enough and has pip."""
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(python: Path, arguments: list[str]) -> None:
    done = subprocess.run([python, *arguments], check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SetUpFailed("pip could not install the packages; the lines above say why")


def _fingerprint(lock: Path) -> str:
    """Changes with the lock file, and with whatever the project's own installation depends on."""
    digest = hashlib.sha256()
    for path in (lock, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _written(stamp: Path) -> str:
    try:
        return stamp.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in ("runtime", "dev", "soak"):
        print("usage: set_up.py runtime|dev|soak", file=sys.stderr)
        return 2
    if sys.version_info < OLDEST:
        print("Nerve needs Python 3.11 or newer.", file=sys.stderr)
        return 1
    try:
        set_up(sys.argv[1])
    except SetUpFailed as failed:
        print(f"Set-up failed: {failed}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
