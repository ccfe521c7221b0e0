"""nginx or Caddy as docs/reverse-proxy.md sets them up, in front of one Nerve; and clients that go through them.

What the page shows is used as it stands: only ports, file names and nginx's listening address are the test's own.
"""

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from attrs import define, field, frozen

from nerve.client import ClientSocket, open_socket
from tests.live.instance import Instance, eventually
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reverse-proxy.md").read_text(encoding="utf-8")
SNIPPETS: dict[str, str] = dict(re.findall(r"```\w+\n# (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))
HERE = Path(__file__).parent
NAME = "nerve.example.org"
CLIENT = "127.0.0.2"  # the proxy itself connects from 127.0.0.1
FOREIGN = "https://evil.example.org"
START_SECONDS = 60.0
REQUEST_SECONDS = 60.0
LEASH = ["timeout", "15m"] if shutil.which("timeout") else []  # for a run of tests that is killed itself

# Nothing here changes what a proxy does with a request: where it may write, and under whom it runs.
NGINX_FRAME = """{user}
daemon off;
pid {root}/nginx.pid;
error_log {root}/nginx.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
{site}
}}
"""
# Certificates by its own authority instead of the public one, and no port 80.
CADDY_FRAME = """{{
    admin off
    auto_https disable_redirects
    local_certs
    skip_install_trust
    default_bind 127.0.0.1
    https_port {port}
    storage file_system {root}/storage
}}

{site}
"""


@frozen
class Kind:
    """A proxy program.  ``configure`` writes its files: directory, port, site to arguments and trusted authority."""

    name: str
    configure: Callable[[Path, int, str], tuple[list[str], Path]]

    @property
    def program(self) -> str | None:
        return shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

    def required(self) -> str:
        """Skips the test where it isn't installed."""
        if (program := self.program) is None:
            pytest.skip(f"{self.name} is not installed (Debian: apt-get install nginx-light caddy)")
        return program


def _nginx(root: Path, port: int, site: str) -> tuple[list[str], Path]:
    site = replaced(site, "listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
    site = replaced(site, f"/etc/ssl/{NAME}.pem", str(HERE / "certificate.pem"))
    site = replaced(site, f"/etc/ssl/{NAME}.key", str(HERE / "certificate.key"))
    user = "user root;" if os.geteuid() == 0 else ""  # a user of its own could not reach the test's directory
    (root / "nginx.conf").write_text(NGINX_FRAME.format(root=root, site=site, user=user))
    return ["-c", f"{root}/nginx.conf", "-e", f"{root}/nginx.log", "-p", str(root)], HERE / "certificate.pem"


def _caddy(root: Path, port: int, site: str) -> tuple[list[str], Path]:
    (root / "Caddyfile").write_text(CADDY_FRAME.format(root=root, site=site, port=port))
    authority = root / "storage" / "pki" / "authorities" / "local" / "root.crt"
    return ["run", "--config", f"{root}/Caddyfile", "--adapter", "caddyfile"], authority


KINDS = {"nginx": Kind("nginx", _nginx), "caddy": Kind("caddy", _caddy)}


def replaced(text: str, old: str, new: str) -> str:
    """Raises AssertionError if the page does not show what is to be replaced, once."""
    assert text.count(old) == 1, f"{old!r} in\n{text}"
    return text.replace(old, new)


# --- the proxy --------------------------------------------------------------------------------------------------------


@define(eq=False)
class Proxy:
    """A running proxy; ``origin`` is what a browser calls it."""

    kind: str
    root: Path
    port: int
    process: "subprocess.Popen[bytes]"
    _authority: Path
    tls: ssl.SSLContext = field(init=False)

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"

    @property
    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.root.glob("*.log")))

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._shakes_hands():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, f"no answer in time\n{self.log}"
            time.sleep(0.02)

    def _shakes_hands(self) -> bool:
        """Caddy listens before it has made its certificate."""
        try:
            self.tls = ssl.create_default_context(cafile=self._authority)
            with socket.create_connection(("127.0.0.1", self.port), 5) as plain:
                self.tls.wrap_socket(plain, server_hostname=NAME).close()
        except OSError:
            return False
        return True

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)

    def client(self, *, local_address: str = CLIENT, http2: bool = False) -> httpx.Client:
        """Comes from another address than the proxy, and calls it by its public name."""
        plain = httpx.HTTPTransport(verify=self.tls, local_address=local_address, http2=http2)
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"host": f"{NAME}:{self.port}"},
            transport=_ByName(plain),
            timeout=REQUEST_SECONDS,
            trust_env=False,
        )

    @asynccontextmanager
    async def socket(self, token: str, session_id: str | None = None) -> AsyncIterator[ClientSocket]:
        with public_names():
            async with open_socket(self.origin, token, session_id=session_id, tls=self.tls) as live:
                yield live


@define
class _ByName(httpx.BaseTransport):
    """TLS for the public name, whatever the address in the URL is."""

    _plain: httpx.HTTPTransport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions = {**request.extensions, "sni_hostname": NAME}
        return self._plain.handle_request(request)

    def close(self) -> None:
        self._plain.close()


class _PublicNames(trio.abc.HostnameResolver):
    """The name service of the world in which nerve.example.org is this machine."""

    async def getaddrinfo(self, host: Any, *rest: Any) -> Any:
        where = "127.0.0.1" if host in (NAME, NAME.encode()) else host
        return await trio.to_thread.run_sync(socket.getaddrinfo, where, *rest)

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@contextmanager
def public_names() -> Iterator[None]:
    before = trio.socket.set_custom_hostname_resolver(_PublicNames())
    try:
        yield
    finally:
        trio.socket.set_custom_hostname_resolver(before)


@contextmanager
def running(kind: Kind, root: Path, upstream: str, change: Callable[[str], str] = str) -> Iterator[Proxy]:
    """The proxy in front of ``upstream`` (host:port); ``change`` edits the page's snippet."""
    program = kind.required()
    root.mkdir()
    port = free_port()
    site = change(replaced(SNIPPETS[kind.name], "127.0.0.1:8900", upstream))
    arguments, authority = kind.configure(root, port, site)
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "XDG_DATA_HOME": str(root), "XDG_CONFIG_HOME": str(root)}
    with open(root / "output.log", "wb") as log:
        process = subprocess.Popen(
            [*LEASH, program, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    proxy = Proxy(kind.name, root, port, process, authority)
    try:
        proxy.wait_until_it_answers()
        yield proxy
    finally:
        proxy.end()


# --- Nerve behind it --------------------------------------------------------------------------------------------------


@define(eq=False)
class Nerve:
    """A claimed Nerve that keeps its port over restarts."""

    instance: Instance
    port: int = field(factory=free_port)
    token: str = field(default="", repr=False)
    child: "subprocess.Popen[bytes]" = field(init=False)

    @property
    def upstream(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.child = self.instance.foreground("--port", str(self.port))
        if not self.token:
            self.token = self.instance.claim()


@define(eq=False)
class Site:
    """A Nerve and the proxy before it, as somebody sees it who has signed in."""

    nerve: Nerve
    proxy: Proxy

    def client(self, **how: Any) -> httpx.Client:
        client = self.proxy.client(**how)
        client.headers["authorization"] = f"Bearer {self.nerve.token}"
        return client

    def by_cookie(self) -> httpx.Client:
        client = self.proxy.client()
        client.headers["cookie"] = f"nerve_token={self.nerve.token}"
        return client

    def socket(self, session_id: str | None = None) -> AbstractAsyncContextManager[ClientSocket]:
        return self.proxy.socket(self.nerve.token, session_id)

    def logged(self, request_id: str, count: int) -> list[str]:
        """So many lines of the access log about this id; they are written after the reply."""

        def found() -> list[str]:
            return [line for line in self.nerve.instance.log.splitlines() if f" {request_id} " in line]

        eventually(lambda: len(found()) >= count)
        return found()

    def peers(self, request_id: str, count: int) -> list[str]:
        """Whom the access log names for so many requests of this id."""
        return [line.split()[-2] for line in self.logged(request_id, count)]


def settings(*without: str) -> str:
    """The page's ``config.yaml``, less the keys named."""
    lines = SNIPPETS["nerve"].splitlines(keepends=True)
    kept = [line for line in lines if line.partition(":")[0].strip() not in without]
    assert len(kept) == len(lines) - len(without)
    return "".join(kept)


@contextmanager
def nerve_with(config: str, root: Path) -> Iterator[Nerve]:
    """A Nerve that runs with this ``config.yaml``."""
    root.mkdir()
    nerve = Nerve(Instance(root))
    nerve.instance.home.mkdir(mode=0o700)
    (nerve.instance.home / "config.yaml").write_text(config)
    try:
        nerve.start()
        yield nerve
    finally:
        nerve.instance.close()
