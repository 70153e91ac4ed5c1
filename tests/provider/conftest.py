"""Airflow for provider tests: its own home, no examples."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from airflow.sdk import DAG


@pytest.fixture
def dag() -> Iterator[DAG]:
    """An open DAG called ``sales``."""
    with DAG("sales", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as opened:
        yield opened
