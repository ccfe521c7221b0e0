"""The rules that come before any operation: host, origin, proxies.  Each check raises the error that says why not."""

from nerve.asgi.head import RequestHead
from nerve.asgi.hosts import HostRule, OriginRule
from nerve.asgi.policy import HttpPolicy
from nerve.asgi.proxies import TrustedProxies
from nerve.errors import ErrorCode, NerveError

_SHOWN = 100


class Gate:
    """Raises ValueError for a malformed setting."""

    def __init__(self, policy: HttpPolicy) -> None:
        self.hosts = HostRule.of(policy.bind_host, policy.allowed_hosts, policy.machine_names)
        self.origins = OriginRule.of(policy.allowed_origins)
        self.proxies = TrustedProxies.of(policy.trusted_proxies)

    def check_host(self, head: RequestHead) -> None:
        """Every claim has to pass: what a proxy forwards does not excuse the Host it was sent to itself."""
        for text, authority in head.hosts:
            if authority is None or not self.hosts.accepts(authority):
                raise NerveError(ErrorCode.WRONG_HOST, host=_shown(text))

    def check_origin(self, head: RequestHead) -> None:
        if not self.origins.accepts(head.origin, head.scheme, head.authority):
            raise NerveError(ErrorCode.FOREIGN_ORIGIN)


def _shown(text: str) -> str:
    if not text:
        return "(none)"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
