"""The private cache folder: where it is, and when it is not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_dagsched.launch.secrecy.cache_folder import NotPrivate, choose_cache_folder, open_private_folder


def test_it_is_where_such_things_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert choose_cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/dagsched")
    assert choose_cache_folder({"XDG_CACHE_HOME": "x"}) == choose_cache_folder({}) == Path("/home/me/.cache/dagsched")


def test_a_user_without_a_home_has_one_of_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", fail)
    assert choose_cache_folder({}).name.startswith("dagsched-")


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = open_private_folder(tmp_path / "a" / "cache")
    assert made.stat().st_mode & 0o777 == 0o700
    assert open_private_folder(made) == made


def test_one_that_others_may_use_or_replace_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir(mode=0o700)
    loose.chmod(0o750)
    with pytest.raises(NotPrivate, match="chmod 700"):
        open_private_folder(loose)
    (tmp_path / "link").symlink_to(open_private_folder(tmp_path / "cache"))
    with pytest.raises(NotPrivate):
        open_private_folder(tmp_path / "link")
    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o777)
    with pytest.raises(NotPrivate, match="others may write"):
        open_private_folder(everybody / "cache")
