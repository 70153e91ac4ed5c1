"""Where a state goes on, rows must: sources that can't begin at an exact row are told of."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.streams.exact_starts import explain_inexact
from airflow_dagsched.launch.streams.manifest import SourceSpec

FILES, KAFKA = SourceSpec("clicks", "parquet", "ts"), SourceSpec("orders", "kafka", "ts")


@pytest.mark.parametrize("sources", [(FILES,), (KAFKA,), (FILES, SourceSpec("others", "json", "ts")), ()])
def test_exact(sources: tuple[SourceSpec, ...]):
    assert explain_inexact(sources) == ""


@pytest.mark.parametrize(
    ("sources", "named"),
    [
        ((SourceSpec("sales", "delta", "ts"),), "delta of source 'sales'"),
        ((KAFKA, SourceSpec("sales", "iceberg", "ts")), "iceberg of source 'sales'"),
        ((SourceSpec("old", "csv", "ts", options={"BasePath": "/in"}),), "basePath of source 'old'"),
        ((FILES, KAFKA), "files of 'clicks'"),
    ],
)
def test_inexact(sources: tuple[SourceSpec, ...], named: str):
    assert named in explain_inexact(sources)
