"""An application that waits for the owner's driver to be lost: what it does, and who leaves what to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.switch.advising.advance import advance
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.advising.standby import Leave, StandBy, TakeOver, Verdict, judge_standby
from airflow_dagsched.switch.log.standbys import AWAY_S, find_standby, is_kept_away, make_standby, send_away
from airflow_dagsched.switch.places import STANDBY, FlowPlaces
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.retention import REQUEST_S, Going, choose_standbys
from airflow_dagsched.switch.signs import FRESH_S, HEAD_START_S, Seen, Sign, Starts
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import (
    make_aborted,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    tell,
)

NOW = 1000.0
FIRST = (make_epoch(1, x_standbys=1), make_started(1), make_batch(1, 0), make_current(1))
SECOND = (make_epoch(2, x_standbys=1), make_started(2), make_batch(2, 0, kept=0))
FENCED = (*FIRST, *SECOND, make_fence(1, 40.0))
RETIRING = (*FENCED, make_batch(1, 1, watermark=40.0), make_drained(1))
UP = Sign(STANDBY, "app-2", NOW - 2, "standby")
OWNER = Sign(1, "app-1", NOW - 30, "running")


def look(*held: int, **seen: object) -> Seen:
    return Seen(NOW, frozenset(held), **seen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("records", "seen", "fits", "due", "verdict"),
    [
        (FIRST, look(1), {1}, (), StandBy()),
        (FIRST, look(1), {1}, {1}, StandBy()),  # the lease is another's meanwhile
        (FIRST, look(), {1}, {1}, TakeOver(1)),
        (FIRST, look(), {1}, (), StandBy()),  # its driver crashes, or it is to stop: nobody is to start it
        (FIRST, look(starts={1: Starts(3, NOW - 3)}), {1}, {1}, StandBy()),
        (FIRST, look(starts={1: Starts(3, NOW - 5)}), {1}, {1}, TakeOver(1)),
        (FIRST[:1], look(), {1}, {1}, StandBy()),  # the launch task starts it for the first time
        (FIRST, look(1, orders={1: {"stop": "enough"}}), {1}, (), Leave("no graph that fits")),
        (FIRST, look(1, orders={STANDBY: {"stop": "a graph needs its room"}}), {1}, (), Leave("a graph needs")),
        ((*FIRST, make_stopped(1, x_cause="person")), look(), {1}, (), Leave("no graph that fits")),
        ((*FIRST, make_stopped(1, x_cause="author")), look(), {1}, (), Leave("no graph that fits")),
        (FIRST, look(1), (), (), Leave("no graph that fits")),
        ((make_epoch(1), *FIRST[1:]), look(1), {1}, (), Leave("no graph that fits")),  # none is wanted
        # A switch in the same application, and in another one.
        ((*FIRST, *SECOND), look(1, 2), {1, 2}, (), StandBy()),
        ((*FIRST, *SECOND), look(), {1, 2}, {1, 2}, TakeOver(1)),
        ((*FIRST, *SECOND), look(1), {1, 2}, {2}, StandBy()),  # of the application that runs the owner
        ((*FIRST, *SECOND), look(2), {1}, {1}, TakeOver(1)),
        ((*FIRST, *SECOND), look(1), {1}, {2}, StandBy()),
        ((*FIRST, *SECOND, make_aborted(2)), look(1), {2}, (), Leave("no graph that fits")),
        (FENCED, look(1, 2), {1}, (), StandBy()),
        (RETIRING, look(1, 2), {1}, (), Leave("no graph that fits")),
        (RETIRING, look(1, 2), {1, 2}, (), StandBy()),
        ((*RETIRING, make_stopped(1), make_current(2)), look(), {1, 2}, {2}, TakeOver(2)),
    ],
)
def test_what_a_standby_does(
    records: tuple[Record, ...], seen: Seen, fits: Collection[int], due: Collection[int], verdict: Verdict
):
    found = judge_standby(tell(*records), seen, fits, due)
    if isinstance(verdict, Leave):
        assert isinstance(found, Leave)
        assert found.reason.startswith(verdict.reason)
    else:
        assert found == verdict


def find_deploys(story: Story, seen: Seen) -> dict[int, float]:
    return {each.epoch: each.not_before for each in advance(story, seen).commands if isinstance(each, Deploy)}


def test_a_standby_is_started_beside_an_owner_that_runs():
    story = tell(*FIRST)
    assert find_deploys(story, look(1)) == {STANDBY: 0.0}
    assert find_deploys(story, look(1, starts={STANDBY: Starts(3, NOW)})) == {STANDBY: NOW + 4}
    assert find_deploys(story, look(1, STANDBY)) == {}
    assert find_deploys(story, look()) == {1: 0.0}, "first the owner"
    assert find_deploys(tell(make_epoch(1), *FIRST[1:]), look(1)) == {}
    assert find_deploys(tell(*FIRST, make_stopped(1)), look()) == {}


@pytest.mark.parametrize(
    ("held", "standby", "owner", "not_before"),
    [
        ((STANDBY,), UP, OWNER, OWNER.at + HEAD_START_S),
        ((), UP, OWNER, 0.0),
        ((STANDBY,), replace(UP, at=NOW - FRESH_S - 1), OWNER, 0.0),
        ((STANDBY,), replace(UP, phase="starting"), OWNER, 0.0),
        ((STANDBY,), UP, None, 0.0),
    ],
)
def test_who_follows_an_epoch_leaves_it_to_a_standby_for_a_while(
    held: tuple[int, ...], standby: Sign, owner: Sign | None, not_before: float
):
    signs = {STANDBY: standby, **({1: owner} if owner else {})}
    assert find_deploys(tell(*FIRST), look(*held, signs=signs))[1] == not_before


def test_an_application_that_goes_on_waits_for_no_standby():
    both, signs = tell(*FIRST, *SECOND), {STANDBY: UP, 1: OWNER, 2: replace(OWNER, epoch=2)}
    assert find_deploys(both, look(1, STANDBY, signs=signs)) == {2: 0.0}


def test_the_newest_folder_is_the_standby_s(tmp_path: Path):
    flow = FlowPlaces(tmp_path)
    assert find_standby(flow) is None
    first = make_standby(flow)
    assert make_standby(flow) == first, "nothing was started from it"
    first.private.mkdir()
    second = make_standby(flow)
    assert [first.folder.name, second.folder.name] == ["00000001", "00000002"]
    assert find_standby(flow) == second


def test_a_standby_stays_away_as_long_as_a_graph_needs_its_room(tmp_path: Path):
    flow = FlowPlaces(tmp_path)
    send_away(flow, NOW)
    standby = make_standby(flow)
    assert not is_kept_away(standby, NOW)
    send_away(flow, NOW)
    send_away(flow, NOW)
    assert [is_kept_away(standby, NOW + passed) for passed in (1, AWAY_S + 1)] == [True, False]


def test_what_a_standby_has_left_goes_when_its_application_has():
    story, long_ago = tell(make_epoch(1), make_started(1, application="app-2")), NOW - 2 * REQUEST_S
    folders = {"1": ("app-1", long_ago), "2": ("app-2", long_ago), "3": ("app-3", long_ago), "4": ("", NOW)}
    assert choose_standbys(story, folders, frozenset({1}), NOW, 0.0) == Going(("1", "3"))
    assert choose_standbys(story, folders, frozenset({1}), NOW, 1e6) == Going((), ("1", "3"))
    del folders["4"]
    assert choose_standbys(story, folders, frozenset({1, STANDBY}), NOW, 0.0) == Going(("1",))
    assert choose_standbys(story, folders, frozenset(), NOW, 0.0) == Going(("1", "2", "3"))
