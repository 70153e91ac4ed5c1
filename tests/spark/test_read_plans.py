"""Plans that several readers look at."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from airflow_dagsched.spark.driver import read_plans
from airflow_dagsched.spark.driver.read_plans import ReadPlans
from airflow_dagsched.spark.session.plan_columns import Use


class Frame:
    """Stands for a DataFrame: nothing but which it is matters here."""


@dataclass
class Dataset:
    """Stands for a marked one that is handed on, and tells when somebody asks for its mark."""

    content: Frame = field(default_factory=Frame)
    is_asked_for: Event = field(default_factory=Event)

    @property
    def mark(self) -> str:
        """Of both the same."""
        self.is_asked_for.set()
        return "wide__0"


def test_plan_that_two_ask_for_at_once_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of one dataset come at once, and each asks for the plans of all of them."""
    begun, end = Event(), Event()
    taken: list[Any] = []

    def look(df: Any, *_: Any) -> Use:
        taken.append(df)
        begun.set()
        assert end.wait(60)
        return Use(frozenset({len(taken)}))

    monkeypatch.setattr(read_plans, "find_use", look)
    plans, df, first, second = ReadPlans(), Frame(), Dataset(), Dataset()
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(plans.find_use, df, first)  # type: ignore[arg-type]
        assert begun.wait(60)
        other = pool.submit(plans.find_use, df, second)  # type: ignore[arg-type]
        assert second.is_asked_for.wait(60)
        end.set()
    assert one.result() == other.result() == Use(frozenset({1}))
    assert taken == [df]
