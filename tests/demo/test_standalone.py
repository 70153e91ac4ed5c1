"""What keeps one Airflow apart from another."""

import stat
from pathlib import Path

from demo.homes import fresh_home
from demo.standalone import clean, free_ports, login, settings


def test_nothing_of_another_airflow_or_spark_is_inherited() -> None:
    outside = {
        "AIRFLOW_HOME": "/other",
        "AIRFLOW__CORE__EXECUTOR": "x",
        "SPARK_HOME": "/spark",
        "LANG": "C",
        "PATH": "/bin",
    }
    kept = clean(outside)
    assert set(kept) == {"LANG", "PATH"}
    assert kept["PATH"].endswith(":/bin")


def test_what_was_said_of_this_package_counts() -> None:
    assert clean({"AIRFLOW__DAGSCHED__CLASS_ARCHIVE": "off"})["AIRFLOW__DAGSCHED__CLASS_ARCHIVE"] == "off"


def test_what_outlives_a_demo_is_beside_its_home() -> None:
    made = settings(Path("/kept/airflow-1"), Path("/dags"), free_ports(3), database=None, master="local[1]")
    assert made["AIRFLOW__DAGSCHED__CACHE_DIR"] == "/kept/cache"


def test_two_airflows_share_no_port_and_no_file() -> None:
    one, other = (settings(Path(home), Path("/dags"), free_ports(3), database=None, master="local[1]") for home in "ab")
    own = [
        name
        for name in one
        if name.endswith("_PORT") or name in ("AIRFLOW_HOME", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN")
    ]
    assert len(own) == 5
    assert [name for name in own if one[name] == other[name]] == []


def test_password_is_kept_and_private(tmp_path: Path) -> None:
    password = login(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert login(tmp_path) == password
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_two_demos_side_by_side_get_two_homes(tmp_path: Path) -> None:
    """A home in use is left alone; one that was left is emptied and used again."""
    with fresh_home(tmp_path) as first, fresh_home(tmp_path) as second:
        (first / "left").touch()
        assert first != second
    with fresh_home(tmp_path) as again:
        assert (again, list(again.iterdir())) == (first, [])
