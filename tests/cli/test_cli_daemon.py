"""Starting, looking at and ending a daemon, over real processes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from nerve.cli.daemon import STOP_SECONDS, Ended, terminate
from nerve.config import Paths
from tests.live.instance import Instance, eventually
from tests.soak.scale import only_whole, within

pytestmark = pytest.mark.slow


@pytest.mark.req("CLAIM-35")
def test_it_starts_unclaimed_on_empty_directories_and_tells_the_setup_token_to_status_alone(instance: Instance) -> None:
    started = instance.must("start", "--host", "127.0.0.1", "--port", "0")
    found = instance.status()
    assert found["running"] is True
    assert found["login"] == "setup"
    assert found["address"] == instance.address
    assert found["home"] == str(instance.home)
    assert found["workspace"] == str(instance.workspace)
    assert found["config_dir"] == str(instance.home)
    token = found["setup_token"]
    assert token in instance.must("status")
    for text in (started, instance.log, instance.must("logs")):
        assert token not in text
    assert str(found["pid"]) in started
    assert found["address"] in started
    assert str(instance.home / "nerve.log") in started


@pytest.mark.req("CLAIM-10", "CLAIM-34")
@pytest.mark.soak
@only_whole
def test_the_setup_token_outlives_a_restart_and_is_gone_after_the_claim(instance: Instance) -> None:
    instance.must("start", "--port", "0")
    token = instance.status()["setup_token"]
    instance.must("restart")
    assert instance.status()["setup_token"] == token
    instance.claim()
    found = instance.status()
    assert found["login"] == "password"
    assert "setup_token" not in found
    assert token not in instance.must("status")
    assert token not in instance.log


@pytest.mark.req("HEALTH-05")
def test_restart_is_another_process_at_the_same_address(instance: Instance) -> None:
    instance.must("start", "--port", "0")
    before, address = instance.http("GET", "/health").json(), instance.address
    assert instance.must("restart").count("nerve") >= 2
    after = instance.http("GET", "/health").json()
    assert instance.address == address
    assert before["generation"] != after["generation"]


def test_a_second_start_is_refused_and_leaves_the_first_alone(instance: Instance) -> None:
    child = instance.foreground()
    for words in (["start"], ["start", "--foreground"]):
        refused = instance.nerve(*words)
        assert refused.returncode == 1
        assert f"already running (pid {child.pid})" in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert instance.http("GET", "/health").status_code == 200


@pytest.mark.soak
@only_whole
def test_stop_waits_for_the_end_and_is_fine_without_a_daemon(instance: Instance) -> None:
    child = instance.foreground()
    assert str(child.pid) in instance.must("stop")
    assert child.wait(60) == 0
    assert not (instance.home / "nerve.pid").exists()
    assert "not running" in instance.must("stop")
    assert instance.status()["running"] is False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(instance: Instance, number: signal.Signals) -> None:
    child = instance.foreground()
    began = time.monotonic()
    child.send_signal(number)
    assert child.wait(within(9)) == 0
    assert time.monotonic() - began < within(8)
    assert "closed" in instance.log
    assert not (instance.home / "nerve.run.json").exists()


def test_a_closed_terminal_does_not_end_it(instance: Instance) -> None:
    child = instance.foreground()
    child.send_signal(signal.SIGHUP)
    eventually(lambda: "SIGHUP is ignored" in instance.log)
    assert instance.http("GET", "/health").status_code == 200


def test_after_a_kill_it_starts_again_checks_its_database_and_removes_what_the_dead_one_left(
    instance: Instance,
) -> None:
    child = instance.foreground()
    token = instance.claim()
    child.kill()
    child.wait(60)
    assert (instance.home / "nerve.pid").exists()
    assert instance.status()["running"] is False
    assert not (instance.home / "nerve.pid").exists()
    instance.foreground()
    assert instance.http("GET", "/api/auth/check", token).status_code == 200
    eventually(lambda: "the database is sound" in instance.log)


@pytest.mark.soak
@only_whole
def test_another_process_with_the_number_of_a_dead_daemon_is_not_taken_for_it(instance: Instance) -> None:
    instance.home.mkdir()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (instance.home / "nerve.pid").write_text(f"{stranger.pid}\n")
        assert instance.status()["running"] is False
        (instance.home / "nerve.pid").write_text(f"{stranger.pid}\n")
        assert "not running" in instance.must("stop")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait(60)


@pytest.mark.soak
@only_whole
def test_a_daemon_that_does_not_end_is_killed(instance: Instance) -> None:
    child = instance.foreground()
    child.send_signal(signal.SIGSTOP)
    paths = Paths(
        home=instance.home, config_dir=instance.home, config_dir_source="default", workspace=instance.workspace
    )
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        time.sleep(0.001 if sum(waited) < 14 else seconds)
        child.poll()

    assert terminate(child.pid, paths, sleep=sleep) is Ended.KILLED
    assert sum(waited) == pytest.approx(STOP_SECONDS, abs=0.5)
    assert child.wait(60) == -signal.SIGKILL


def test_a_port_that_is_taken_is_one_clear_line(instance: Instance, tmp_path: Path) -> None:
    instance.foreground()
    port = instance.address.rpartition(":")[2]
    (tmp_path / "other").mkdir()
    other = Instance(tmp_path / "other")
    try:
        refused = other.nerve("start", "--port", port)
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert f"127.0.0.1:{port} can't be listened on: another program uses this port" in refused.stderr
        assert other.status()["running"] is False
    finally:
        other.close()


@pytest.mark.soak
@only_whole
def test_a_passwordless_instance_is_not_served_to_other_machines(instance: Instance) -> None:
    child = instance.foreground()
    body = {"setup_token": instance.status()["setup_token"], "passwordless": True}
    assert instance.http("POST", "/api/setup/claim", json=body).status_code == 200
    child.send_signal(signal.SIGTERM)
    child.wait(9)
    refused = instance.nerve("start", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 1
    assert "gateway.allow_passwordless_remote" in refused.stderr
    (instance.home / "config.yaml").write_text("gateway: {allow_passwordless_remote: true}\n")
    instance.must("start", "--host", "0.0.0.0", "--port", "0")
    assert instance.status()["address"].startswith("http://0.0.0.0:")


@pytest.mark.soak
@only_whole
def test_a_newer_database_is_refused_untouched(instance: Instance) -> None:
    import apsw

    instance.foreground().send_signal(signal.SIGTERM)
    eventually(lambda: "closed" in instance.log)
    eventually(lambda: instance.status()["running"] is False)
    db = apsw.Connection(str(instance.home / "nerve.db"))
    db.pragma("user_version", 999)
    db.close()
    refused = instance.nerve("start", "--port", "0")
    assert refused.returncode == 1
    assert "999" in refused.stderr
    assert "999" in instance.status()["note"]


@pytest.mark.parametrize("name", ["nerve.lock", "nerve.pid", "nerve.run.json", "nerve.log"])
def test_a_file_of_the_home_that_can_not_be_one_is_one_clear_line(instance: Instance, name: str) -> None:
    (instance.home / name).mkdir(parents=True)
    refused = instance.nerve("start", "--port", "0")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert name in refused.stderr
    assert "directory" in refused.stderr
    assert instance.status()["running"] is False


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_it_serves_over_tls_with_a_configured_certificate(instance: Instance) -> None:
    instance.home.mkdir()
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ],
        cwd=instance.home,
        check=True,
        capture_output=True,
    )
    ssl = "{cert: " + str(instance.home / "cert.pem") + ", key: " + str(instance.home / "key.pem") + "}"
    (instance.home / "config.yaml").write_text(f"gateway: {{port: 0, ssl: {ssl}}}\n")
    instance.must("start")
    assert instance.address.startswith("https://127.0.0.1:")
    assert httpx.get(f"{instance.address}/health", verify=False, trust_env=False).json()["status"] == "ok"
    instance.must("stop")
    (instance.home / "cert.pem").write_text("no certificate")
    refused = instance.nerve("start")
    assert refused.returncode == 1
    assert "gateway.ssl" in refused.stderr


def test_the_log_is_shown_and_followed(instance: Instance) -> None:
    assert "no log yet" in instance.nerve("logs").stderr
    instance.must("start", "--port", "0")
    shown = instance.must("logs").splitlines()
    assert shown[0] == str(instance.home / "nerve.log")
    assert any("listens on" in line for line in shown)
    follower = subprocess.Popen(
        [sys.executable, "-P", "-m", "nerve", "logs", "-f"],
        env=instance.env,
        stdout=subprocess.PIPE,
        text=True,
        # A shell has what it runs in the background ignore ^C, these tests perhaps among it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert follower.stdout is not None
    try:
        while "listens on" not in follower.stdout.readline():
            pass
        instance.http("GET", "/api/auth/status")
        while "/api/auth/status" not in follower.stdout.readline():
            pass
        follower.send_signal(signal.SIGINT)
        assert follower.wait(60) == 0
    finally:
        follower.kill()
        follower.wait(60)
        follower.stdout.close()


def test_files_of_the_home_are_private(instance: Instance) -> None:
    instance.home.mkdir(mode=0o755)
    os.chmod(instance.home, 0o755)
    instance.must("start", "--port", "0")
    assert instance.home.stat().st_mode & 0o777 == 0o700
    for path in instance.home.iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    program = (
        "import resource as r; hard = r.getrlimit(r.RLIMIT_NOFILE)[1]; r.setrlimit(r.RLIMIT_NOFILE, (64, hard));"
        "from nerve.asgi.server import raise_file_limit;"
        "print(raise_file_limit() == hard, r.getrlimit(r.RLIMIT_NOFILE) == (hard, hard))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "True True\n"
