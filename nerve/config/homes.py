"""What this package writes: the home directory, the workspace directory, the pointer file and the signing secret.

Called by the daemon at its start (decisions D23), never by ``load``.  All of it blocks on small local files.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from nerve.config.config import OVERLAY_FILE, Config, Paths
from nerve.config.findings import ConfigError
from nerve.config.secret import Secret

SECRET_RANDOM_BYTES = 48
SECRET_MIN_CHARACTERS = 32
SECRET_MAX_BYTES = 4096

# A chance to notice trouble that is no reason to refuse: one line each, without any secret.
Warnings = tuple[str, ...]


def prepare(paths: Paths) -> None:
    """Make the home (0700) and the workspace, or tighten the home that is there.

    Raises ConfigError when either can't serve: another owner, a shared directory such as /tmp, a link of a stranger,
    something that is no directory.
    """
    _prepare_home(paths.home)
    try:
        paths.workspace.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"workspace: {paths.workspace} is not a directory") from None
    except OSError as error:
        raise ConfigError(f"workspace: {paths.workspace} can't be made: {error.strerror}") from None
    _tighten_overlay(paths.config_dir / OVERLAY_FILE)


def _tighten_overlay(path: Path) -> None:
    """The layer that holds secrets is its owner's alone (config.md section 1), whoever wrote it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # there is none, or it is a link or somebody else's: the warning about its mode stands
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _prepare_home(home: Path) -> None:
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            home.mkdir(mode=0o700)
        link = os.lstat(home)
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, os.geteuid()):
            raise ConfigError(f"NERVE_HOME: {home} is a link that another user made")
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (NotADirectoryError, FileExistsError):
        raise ConfigError(f"NERVE_HOME: {home} is not a directory") from None
    except OSError as error:
        raise ConfigError(f"NERVE_HOME: {home} can't be used: {error.strerror}") from None
    try:
        _tighten_home(home, descriptor)
    finally:
        os.close(descriptor)


def _tighten_home(home: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    root = os.stat("/")
    if found.st_mode & stat.S_ISVTX or (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino):
        raise ConfigError(f"NERVE_HOME: {home} is shared by the whole system; name a directory of its own")
    if os.geteuid() not in (0, found.st_uid):
        raise ConfigError(f"NERVE_HOME: {home} belongs to another user")
    if found.st_mode & 0o077:
        try:
            os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & 0o700)
        except OSError as error:
            raise ConfigError(f"NERVE_HOME: {home} can't be made private: {error.strerror}") from None


def write_pointer(paths: Paths) -> Warnings:
    """Let ``$NERVE_HOME/config_dir`` name the configuration directory of this start; atomic, no write if it does."""
    line = f"{paths.config_dir}\n"
    if line.count("\n") > 1:
        return ("config_dir: the pointer is not written, the directory's name holds a line break",)
    try:
        content = os.fsencode(line)
        if not paths.pointer_file.is_symlink() and _content(paths.pointer_file) == content:
            return ()
        temporary = _write_beside(paths.pointer_file, content)
        try:
            os.replace(temporary, paths.pointer_file)
        except OSError:
            os.unlink(temporary)
            raise
        _sync_directory(paths.home)
    except OSError as error:
        return (f"config_dir: the pointer can't be written: {error.strerror}",)
    return ()


def signing_secret(config: Config, new_secret: Callable[[int], str]) -> tuple[Secret | None, Warnings]:
    """The key that signs tokens: ``auth.jwt_secret``, else the home's own, made when there is none yet.

    ``new_secret`` is ``Effects.secret``.  None means that identity is not ready: a file that is there and can't be
    used is left alone, because a new secret would end every login.
    """
    if config.auth.jwt_secret:
        return config.auth.jwt_secret, ()
    path = config.paths.jwt_secret_file
    try:
        if not os.path.lexists(path):
            _create_secret(path, new_secret(SECRET_RANDOM_BYTES))
        return _read_secret(path)
    except OSError as error:
        return None, (f"jwt_secret: {path} can't be used: {error.strerror}",)


def read_signing_secret(config: Config) -> tuple[Secret | None, Warnings]:
    """``signing_secret`` for whoever must not make one, such as a command beside the daemon."""
    if config.auth.jwt_secret:
        return config.auth.jwt_secret, ()
    try:
        return _read_secret(config.paths.jwt_secret_file)
    except OSError as error:
        return None, (f"jwt_secret: {config.paths.jwt_secret_file} can't be used: {error.strerror}",)


def _create_secret(path: Path, secret: str) -> None:
    """Whole or not at all, and never over another: the finished file is linked into place."""
    content = secret.encode() + b"\n"
    temporary = _write_beside(path, content)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return  # another process was first; its secret counts
    except OSError:
        # Some mounts know no hard links; there the start lock alone keeps two writers apart.
        _write_new(path, content)
    finally:
        os.unlink(temporary)
    _sync_directory(path.parent)


def _read_secret(path: Path) -> tuple[Secret | None, Warnings]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or os.geteuid() not in (0, found.st_uid):
            return None, (f"jwt_secret: {path} is not a file of this user",)
        warnings: Warnings = ()
        if found.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
            warnings = (f"jwt_secret: {path} was readable by others; its mode is 0600 now",)
        content = os.read(descriptor, SECRET_MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    text = content.decode("ascii", "replace").strip()
    if not SECRET_MIN_CHARACTERS <= len(text) <= SECRET_MAX_BYTES or not text.isascii() or not text.isprintable():
        return None, (f"jwt_secret: {path} holds no usable secret; restore it, or remove it to sign everybody out",)
    return Secret(text), warnings


def _content(path: Path) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read(SECRET_MAX_BYTES + 1)
    except FileNotFoundError:
        return None


def _write_beside(path: Path, content: bytes) -> Path:
    """A finished, synced file (0600) in the directory of ``path``; the caller moves it or removes it."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    return _filled(descriptor, Path(temporary), content)


def _write_new(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    _filled(os.open(path, flags, 0o600), path, content)


def _filled(descriptor: int, path: Path, content: bytes) -> Path:
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
    except OSError:
        os.unlink(path)
        raise
    return path


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
