"""Signs, ends and orders as files; where a flow's files are."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.switch.log.signs_files import (
    place_order,
    read_ended,
    read_orders,
    read_sign,
    read_starts,
    remove_order,
    write_ended,
    write_sign,
    write_starts,
)
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.signs import FRESH_S, Ended, Sign, Starts, find_next_start, is_alive

SIGN = Sign(epoch=2, application="app-1", at=100.0, phase="running", batch={"out": 3}, newest={"clicks": None})


def test_what_a_driver_tells_is_read_as_it_was_written(tmp_path: Path):
    places = name_flow(tmp_path, "dag", "flow").name_epoch("0a1b2c3d")
    assert (read_sign(places), read_ended(places), read_starts(places), read_orders(places)) == (None, None, None, {})
    ended = Ended(1, "author", 7.0, "out", "no such column", batches=2)
    write_sign(places, SIGN)
    write_sign(places, SIGN)
    write_ended(places, ended)
    write_starts(places, Starts(3, 50.0))
    assert (read_sign(places), read_ended(places), read_starts(places)) == (SIGN, ended, Starts(3, 50.0))
    assert sorted(each.name for each in places.folder.iterdir()) == ["exit.json", "starts.json", "status.json"]


def test_a_torn_sign_is_none(tmp_path: Path):
    places = name_flow(tmp_path, "dag", "flow").name_epoch("0a1b2c3d")
    write_sign(places, SIGN)
    places.status.write_text(places.status.read_text()[:-2])
    assert read_sign(places) is None


def test_the_first_of_equal_orders_counts_until_it_is_taken_back(tmp_path: Path):
    places = name_flow(tmp_path, "dag", "flow").name_epoch("0a1b2c3d")
    assert place_order(places, "stop", "ann", 1.0, "maintenance")
    assert not place_order(places, "stop", "bob", 2.0, "again")
    assert place_order(places, "confirm", "bob", 2.0, "")
    assert read_orders(places) == {"stop": "maintenance", "confirm": ""}
    remove_order(places, "stop")
    remove_order(places, "stop")
    assert read_orders(places) == {"confirm": ""}


def test_a_driver_lives_as_long_as_its_sign_is_fresh():
    assert is_alive(SIGN, 100.0 + FRESH_S)
    assert not is_alive(SIGN, 100.1 + FRESH_S)
    assert not is_alive(None, 0.0)


def test_each_start_in_vain_makes_the_next_wait_longer():
    waits = [find_next_start(Starts(count, 1000.0), 1000.0) - 1000.0 for count in (1, 2, 3, 9, 10, 10**6)]
    assert waits == [1, 2, 4, 256, 300, 300]
    assert find_next_start(None, 0.0) == find_next_start(Starts(0, 1000.0), 0.0) == 0


def test_a_clock_that_is_set_back_keeps_no_driver_away():
    """The start that it was an hour ahead at would be waited for an hour."""
    starts = Starts(3, 4600.0)
    assert find_next_start(starts, 1000.0) == 0
    assert find_next_start(starts, 4590.0) == 4604, "clocks of hosts differ by seconds"


def test_leases_are_where_their_keeper_has_them(tmp_path: Path):
    """Names that no folder can have, too."""
    flow = name_flow(tmp_path, "_dag", "a/b")
    assert flow.folder == tmp_path / "streams" / "%5Fdag" / "a%2Fb"
    leases = flow.name_leases(3)
    assert (leases.parents[1], leases.name) == (tmp_path / "leases", "epoch-3")
    assert flow.lease_key == "stream:%5Fdag/a%2Fb"
