"""A table write that dies at any point, and the next one that dies too: each row once, and nobody stuck.

All points of all kinds, and some of the pairs; all pairs: ``python -m tests.simulation.crash_points``. What is asked
for after the last try: the step's rows are there once, as are those of others that it leaves; no swap is open.

Expected by design:

* a data file of the step's own that somebody removed after the commit is made again by the step's next try, which finds
  that what its record says is not there. Those of others are gone until their own step runs: no record of theirs is
  looked at here, so only the step's own are removed.
* a commit whose data, journal or record is removed before it is in the table is made again; rows that it had already
  taken out, or moved in, are known by the key in their names.
* at a mount point a write is refused before its record, and the table is as it was. If the mount comes between the
  record and the moves, the moves are refused for as long as it is there: nothing else may be done with a table that
  holds half a commit. Without the mount the next try finishes it.
* a table that is moved away without its hidden folder begins anew: what was open beside its old place stays there.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from airflow_dagsched.spark.outputs import table_commit
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.path_tables import PathTables
from tests.simulation.crash_points import Exploration, Found, in_a_hurry
from tests.simulation.crash_tries import SETTINGS, Setting

SHARE = 0.001
"""Of the pairs."""
PARTITIONS = Setting("local", "overwrite", True, "one work dir")


def explore(setting: Setting, share: float, harm: str = "") -> Found:
    """Its points, and a share of its pairs."""
    with in_a_hurry():
        return Exploration(setting, share, Random(str(setting)), harm).explore()


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_no_crash_loses_rows_or_blocks_the_table(setting: Setting):
    """Wherever the writer dies, whatever happens to its files, whoever comes next."""
    found = explore(setting, SHARE)
    assert (found.wrong, found.stuck) == ([], [])
    assert found.points > 400
    assert found.pairs > 10


MENDS: dict[str, tuple[str, Any, str, Callable[..., Any]]] = {
    "the way in is tried before the record": ("mount", table_commit, "check_way_in", lambda *_: None),
    "rows are found by the key in their names": ("remove_commits", table_commit, "folders_with", lambda *_: ()),
    "earlier commits are looked for wherever they were": (
        "remove_journal",
        CommitLog,
        "folders_before",
        lambda *_: set(),
    ),
    "what a commit replaced is not reused with it": ("remove_journal", PathTables, "_holds_replaced", lambda *_: False),
}


@pytest.mark.parametrize("mend", MENDS)
def test_a_mend_taken_out_turns_a_point_red(mend: str, monkeypatch: pytest.MonkeyPatch):
    """So each is needed, and seen."""
    harm, where, name, instead = MENDS[mend]
    monkeypatch.setattr(where, name, instead)
    found = explore(PARTITIONS, 0.0, harm)
    assert found.wrong or found.stuck
