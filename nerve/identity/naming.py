"""What a username and a password have to look like (gaps.md 1.3 and 1.4)."""

import re

from nerve.errors import ErrorCode, NerveError

PASSWORD_MAX_BYTES = 72
RESERVED = frozenset({"system", "nerve", "agent", "assistant", "me", "none", "null", "anonymous"})
_USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def normal_username(given: str) -> str:
    """How a name is compared and stored.  Other scripts are left alone: some of their letters lower to ASCII."""
    trimmed = given.strip()
    return trimmed.lower() if trimmed.isascii() else trimmed


def checked_username(given: str) -> str:
    """The name in its stored form.  Raises BAD_USERNAME."""
    name = normal_username(given)
    if not _USERNAME.fullmatch(name) or name in RESERVED:
        raise NerveError(ErrorCode.BAD_USERNAME)
    return name


def password_bytes(password: str) -> bytes:
    # A command line may hand over undecodable bytes as lone surrogates.
    return password.encode("utf-8", "surrogatepass")


def fits_bcrypt(password: str) -> bool:
    """False for more than 72 bytes: bcrypt would cut such a password or refuse it."""
    return len(password_bytes(password)) <= PASSWORD_MAX_BYTES


def checked_password(password: str) -> str:
    """Raises EMPTY_PASSWORD or PASSWORD_TOO_LONG."""
    if not password:
        raise NerveError(ErrorCode.EMPTY_PASSWORD)
    if not fits_bcrypt(password):
        raise NerveError(ErrorCode.PASSWORD_TOO_LONG)
    return password
