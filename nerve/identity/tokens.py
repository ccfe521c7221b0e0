"""Minting and reading tokens (gaps.md 1 "Tokens", decisions D22): pure functions over a secret and the time."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import jwt
from attrs import frozen
from jwt.algorithms import HMACAlgorithm

from nerve.contract.caller import CredentialKind

SYSTEM_SECONDS = 300
CLOCK_SKEW_SECONDS = 60
MCP_AUDIENCE = "nerve-mcp"
LEGACY_SUBJECT = "user"
_LONGEST = 4096


class _Hs256(HMACAlgorithm):
    """HS256 whose key is taken as it is: configuration warns of a short one, and no other algorithm is accepted."""

    def __init__(self) -> None:
        super().__init__(HMACAlgorithm.SHA256)

    def prepare_key(self, key: str | bytes) -> bytes:
        return key.encode() if isinstance(key, str) else key

    def check_key_length(self, key: bytes) -> None:
        return None


_JWS = jwt.PyJWS(algorithms=[])
_JWS.register_algorithm("HS256", _Hs256())


@frozen
class Claims:
    """What a token with a good signature says.  Instants are seconds since 1970.

    ``subject`` is the account id of a session, the person of an external context, else empty.
    """

    kind: CredentialKind
    expires_at: float
    issued_at: float | None = None
    subject: str = ""
    name: str | None = None
    session_id: str | None = None

    def valid_at(self, now: float) -> bool:
        """Not expired, not from the future, and no short-lived kind that was made to live long."""
        if now >= self.expires_at:
            return False
        if self.issued_at is not None and self.issued_at > now + CLOCK_SKEW_SECONDS:
            return False
        if self.kind in (CredentialKind.SYSTEM, CredentialKind.EXTERNAL):
            begun = now if self.issued_at is None else self.issued_at
            return self.expires_at - begun <= SYSTEM_SECONDS
        return True

    def past_half(self, now: float) -> bool:
        return self.issued_at is not None and now - self.issued_at > (self.expires_at - self.issued_at) / 2


def mint_session(secret: bytes, account_id: str, now: datetime, hours: int) -> str:
    return _signed(secret, now, hours * 3600, typ="session", sub=account_id)


def mint_system(secret: bytes, now: datetime) -> str:
    """For one call of the command line; good for five minutes."""
    return _signed(secret, now, SYSTEM_SECONDS, typ="system")


def mint_mcp(secret: bytes, session_id: str | None, now: datetime, hours: int) -> str:
    """For the tools of an agent; with ``session_id`` it acts on behalf of that session's cause."""
    bound = {} if session_id is None else {"nerve_session_id": session_id}
    return _signed(secret, now, hours * 3600, aud=MCP_AUDIENCE, **bound)


def read_token(secret: bytes, token: str) -> Claims | None:
    """The claims of one of our own tokens; None if it is not one.  Says nothing about the time."""
    payload = _verified(secret, token)
    return None if payload is None else _own_claims(payload)


def read_actor_context(secret: bytes, token: str) -> Claims | None:
    """The person that the gateway names (gaps.md 2.2); None if the signature or the form is wrong."""
    payload = _verified(secret, token)
    if payload is None:
        return None
    subject, name = payload.get("sub"), payload.get("name")
    if not isinstance(subject, str) or not subject or not isinstance(name, str | None):
        return None
    return _timed(payload, CredentialKind.EXTERNAL, subject=subject, name=name)


def _signed(secret: bytes, now: datetime, seconds: int, **claims: str) -> str:
    issued = int(now.timestamp())
    payload = {**claims, "iat": issued, "exp": issued + seconds}
    return _JWS.encode(json.dumps(payload, separators=(",", ":")).encode(), secret, "HS256")


def _verified(secret: bytes, token: str) -> Mapping[str, Any] | None:
    """The payload of a well-signed token.  A hostile one can neither cost much nor raise."""
    if len(token) > _LONGEST:
        return None
    try:
        payload = json.loads(_JWS.decode(token, secret, algorithms=["HS256"]))
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _own_claims(payload: Mapping[str, Any]) -> Claims | None:
    match payload:
        case {"typ": "session", "sub": str(subject), "iat": _} if "aud" not in payload:
            return _timed(payload, CredentialKind.SESSION, subject=subject)
        case {"typ": "system"} if "aud" not in payload:
            return _timed(payload, CredentialKind.SYSTEM)
        case {"aud": str(audience)} if audience == MCP_AUDIENCE and "typ" not in payload:
            session_id = payload.get("nerve_session_id")
            if session_id is not None and not isinstance(session_id, str):
                return None
            return _timed(payload, CredentialKind.MCP, session_id=session_id)
        case {"sub": str(subject)} if subject == LEGACY_SUBJECT and "typ" not in payload and "aud" not in payload:
            return _timed(payload, CredentialKind.LEGACY)
        case _:
            return None


def _timed(payload: Mapping[str, Any], kind: CredentialKind, **claims: Any) -> Claims | None:
    expires_at, issued_at = _instant(payload.get("exp")), _instant(payload.get("iat"))
    if expires_at is None or (issued_at is None and "iat" in payload):
        return None
    return Claims(kind=kind, expires_at=expires_at, issued_at=issued_at, **claims)


def _instant(value: Any) -> float | None:
    """Within what a float can hold; a bool is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e15 else None
