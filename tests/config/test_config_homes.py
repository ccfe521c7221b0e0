"""The home and what is in it: modes, links, the pointer, the signing secret (decisions D23)."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest
from config_house import House

from nerve.config import Config, ConfigError, Secret
from nerve.config.homes import prepare, read_signing_secret, signing_secret, write_pointer
from nerve.effects import Effects


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def with_home(config: Config, home: Path) -> Config:
    return attrs.evolve(config, paths=attrs.evolve(config.paths, home=home))


def test_home_and_workspace_are_made(house: House) -> None:
    paths = house.config(NERVE_HOME=str(house.user_home / "a/b/state")).paths
    prepare(paths)
    assert mode(paths.home) == 0o700
    assert paths.workspace.is_dir()
    prepare(paths)


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o750, 0o700), (0o700, 0o700)])
def test_an_existing_home_is_tightened(house: House, before: int, after: int) -> None:
    house.home.mkdir()
    house.home.chmod(before)
    prepare(house.config().paths)
    assert mode(house.home) == after


def test_a_link_of_ones_own_is_followed_and_its_target_tightened(house: House) -> None:
    target = house.user_home / "disk"
    target.mkdir(mode=0o755)
    house.home.symlink_to(target)
    prepare(house.config().paths)
    assert mode(target) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
def test_a_link_of_another_user_is_refused(house: House) -> None:
    target = house.user_home / "disk"
    target.mkdir(mode=0o755)
    house.home.symlink_to(target)
    os.lchown(house.home, 12345, 12345)
    with pytest.raises(ConfigError, match=r"^NERVE_HOME: .* is a link that another user made$"):
        prepare(house.config().paths)
    assert mode(target) == 0o755


def test_shared_directories_are_refused_and_left_alone(house: House) -> None:
    shared = house.user_home / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    for home in (shared, Path("/")):
        before = mode(home)
        with pytest.raises(ConfigError, match="shared by the whole system"):
            prepare(with_home(house.config(), home).paths)
        assert mode(home) == before


def test_what_is_no_directory_is_refused(house: House) -> None:
    config = house.config()
    file = house.write(house.user_home / "file", "x")
    with pytest.raises(ConfigError, match=r"^NERVE_HOME: .* is not a directory$"):
        prepare(with_home(config, file).paths)
    with pytest.raises(ConfigError, match=r"^NERVE_HOME: .* is not a directory$"):
        prepare(with_home(config, file / "below").paths)
    (house.user_home / "dangling").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"^NERVE_HOME: .* can't be used"):
        prepare(with_home(config, house.user_home / "dangling").paths)
    for workspace in (file, file / "below", house.user_home / "dangling"):
        with pytest.raises(ConfigError, match=r"^workspace: "):
            prepare(attrs.evolve(config.paths, workspace=workspace))


def test_the_pointer_names_the_directory_of_this_start(house: House) -> None:
    directory = house.user_home / "conf"
    house.base("{}", directory)
    paths = house.load(directory).config.paths
    prepare(paths)
    assert write_pointer(paths) == ()
    assert paths.pointer_file.read_text() == f"{directory}\n"
    assert mode(paths.pointer_file) == 0o600
    assert house.config().paths == attrs.evolve(paths, config_dir_source="pointer")
    before = paths.pointer_file.stat()
    assert write_pointer(paths) == ()
    assert paths.pointer_file.stat() == before
    assert write_pointer(attrs.evolve(paths, config_dir=house.home)) == ()
    assert paths.pointer_file.read_text() == f"{house.home}\n"
    assert os.listdir(house.home) == ["config_dir"]


def test_a_link_in_the_pointers_place_is_replaced_and_not_written_through(house: House) -> None:
    paths = house.config().paths
    prepare(paths)
    other = house.write(house.user_home / "other", f"{paths.config_dir}\n")
    paths.pointer_file.symlink_to(other)
    assert write_pointer(attrs.evolve(paths, config_dir=Path("/else"))) == ()
    assert other.read_text() == f"{paths.config_dir}\n"
    assert not paths.pointer_file.is_symlink()


def test_a_pointer_that_can_not_be_written_is_only_a_warning(house: House) -> None:
    paths = house.config().paths
    prepare(paths)
    assert len(write_pointer(attrs.evolve(paths, config_dir=Path("/a\nb")))) == 1
    paths.pointer_file.mkdir()
    assert write_pointer(paths)[0].startswith("config_dir: the pointer can't be written")
    assert os.listdir(house.home) == ["config_dir"]


def start(house: House) -> Config:
    config = house.config()
    prepare(config.paths)
    return config


def revealed(result: tuple[Secret | None, tuple[str, ...]]) -> str | None:
    secret, _ = result
    return None if secret is None else secret.reveal()


def test_the_configured_secret_is_used_and_no_file_is_made(house: House) -> None:
    house.overlay(f"auth: {{jwt_secret: {'s' * 40}}}\n")
    config = start(house)
    assert signing_secret(config, Effects().secret) == (Secret("s" * 40), ())
    assert read_signing_secret(config) == (Secret("s" * 40), ())
    assert not config.paths.jwt_secret_file.exists()


def test_the_first_start_makes_a_secret_and_the_next_ones_keep_it(house: House) -> None:
    config = start(house)
    secret, warnings = signing_secret(config, Effects().secret)
    assert secret is not None
    assert warnings == ()
    assert len(secret.reveal()) >= 43
    assert mode(config.paths.jwt_secret_file) == 0o600
    assert signing_secret(config, Effects().secret) == (secret, ())
    assert read_signing_secret(config) == (secret, ())
    assert os.listdir(config.paths.home) == ["jwt_secret"]


@pytest.mark.req("CLAIM-30")
def test_the_secret_is_made_under_lockdown_too_and_no_layer_is_written(house: House) -> None:
    config = house.config(NERVE_LOCKDOWN="1", NERVE_WORKSPACE=str(house.workspace))
    prepare(config.paths)
    assert revealed(signing_secret(config, Effects().secret))
    assert os.listdir(house.home) == ["jwt_secret"]
    assert os.listdir(house.workspace) == []


def test_many_first_starts_at_once_agree(house: House) -> None:
    config = start(house)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: revealed(signing_secret(config, Effects().secret)), range(2)))
    assert made[0] is not None
    assert len({*made, revealed(read_signing_secret(config))} - {None}) == 1


def test_one_that_appears_meanwhile_counts(house: House) -> None:
    config = start(house)

    def slow(size: int) -> str:
        house.write(config.paths.jwt_secret_file, "f" * 40 + "\n")
        return "o" * size

    assert revealed(signing_secret(config, slow)) == "f" * 40
    assert os.listdir(house.home) == ["jwt_secret"]


@pytest.mark.req("CLAIM-28")
@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40, b"a" * 5000, b"a" * 20 + b"\0" + b"a" * 20])
def test_a_file_without_a_usable_secret_is_left_alone_and_identity_is_not_ready(house: House, content: bytes) -> None:
    config = start(house)
    config.paths.jwt_secret_file.write_bytes(content)
    secret, warnings = signing_secret(config, Effects().secret)
    assert secret is None
    assert len(warnings) == 1
    assert config.paths.jwt_secret_file.read_bytes() == content


@pytest.mark.req("CLAIM-28")
def test_links_directories_and_missing_places_are_not_ready(house: House) -> None:
    config = start(house)
    file = config.paths.jwt_secret_file
    file.symlink_to(house.write(house.user_home / "elsewhere", "s" * 40))
    assert revealed(signing_secret(config, Effects().secret)) is None
    file.unlink()
    file.mkdir()
    assert revealed(signing_secret(config, Effects().secret)) is None
    file.rmdir()
    os.mkfifo(file)
    assert revealed(signing_secret(config, Effects().secret)) is None
    file.unlink()
    assert revealed(read_signing_secret(config)) is None
    house.home.rmdir()
    secret, warnings = signing_secret(config, Effects().secret)
    assert (secret, len(warnings)) == (None, 1)


def test_a_secret_that_others_may_read_is_tightened_and_reported_without_its_value(house: House) -> None:
    config = start(house)
    house.write(config.paths.jwt_secret_file, "s" * 40 + "\n", 0o644)
    secret, warnings = signing_secret(config, Effects().secret)
    assert secret == Secret("s" * 40)
    assert len(warnings) == 1
    assert "ssss" not in warnings[0]
    assert mode(config.paths.jwt_secret_file) == 0o600


def test_mounts_without_hard_links(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    config = start(house)
    made = revealed(signing_secret(config, Effects().secret))
    assert made == revealed(read_signing_secret(config)) is not None
    assert os.listdir(house.home) == ["jwt_secret"]


@pytest.mark.parametrize("before", [0o644, 0o660, 0o600])
def test_the_layer_with_secrets_becomes_its_owners_alone(house: House, before: int) -> None:
    overlay = house.write(house.home / "config.local.yaml", "github_token: x")
    overlay.chmod(before)
    prepare(house.load().config.paths)
    assert mode(overlay) == 0o600
