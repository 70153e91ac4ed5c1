"""Fewer folders must not make Spark read a column as another type."""

from __future__ import annotations

import pytest

from airflow_dagsched.plan.pruning.columns import has_same_types


@pytest.mark.parametrize(
    ("folders", "others", "same"),
    [
        (["day=2013-01-01"], ["day=2013-01-02"], True),
        (["code=1"], ["code=2", "code=-30"], True),
        (["code=1"], ["code=A"], False),  # text
        (["code=A"], ["code=1"], False),  # text either way; not told apart
        (["code=1"], ["code=3000000000"], False),  # long
        (["code=1"], ["code=1.5"], False),  # double
        (["day=2013-01-01"], ["day=2013-01-01 05%3A00"], False),  # timestamp
        (["day=2013-01-01/hour=1"], ["day=2013-01-02"], True),  # of hours elsewhere nothing is known
        (["day=2013-01-01/hour=1"], ["day=2013-01-01/hour=x"], False),
        (["day=1"], ["day=__HIVE_DEFAULT_PARTITION__"], True),
    ],
)
def test_kinds(folders: list[str], others: list[str], same: bool) -> None:
    assert has_same_types(folders, others) == same
