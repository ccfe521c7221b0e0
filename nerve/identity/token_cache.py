"""Tokens whose signature was checked already, so that a client's next request need not check it again."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from nerve.identity.tokens import Claims

PLACES = 1024


class TokenCache:
    """The least recently used fall out, expired ones at once.  Holds hashes, never tokens.

    Only what is fixed by the signature is remembered: the time, the account and its being enabled are looked at
    every time.
    """

    def __init__(self, read: Callable[[str], Claims | None], places: int = PLACES) -> None:
        self._read = read
        self._places = places
        self._known: OrderedDict[bytes, Claims] = OrderedDict()

    def valid(self, token: str, now: float) -> Claims | None:
        """The claims of a token that is well signed and good at ``now`` (seconds since 1970), else None."""
        key = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        claims = self._known.get(key)
        if claims is None:
            if (claims := self._read(token)) is None:
                return None
            self._known[key] = claims
            if len(self._known) > self._places:
                self._known.popitem(last=False)
        if now >= claims.expires_at:
            del self._known[key]
            return None
        self._known.move_to_end(key)
        return claims if claims.valid_at(now) else None
