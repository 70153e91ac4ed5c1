"""What a launch notices of the code that a warm application runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.provider.warm.offer import Offer, build_request

COMMAND = ("spark-submit", "--master", "local[2]", "--properties-file", "/own/spark.properties", "host.py")


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Of a bundle with a module, beside an installed package."""
    for each in ("bundle", "site/shop-1.0.dist-info"):
        (tmp_path / each).mkdir(parents=True)
    (tmp_path / "bundle" / "orders.py").write_text("rows = 1")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    return Offer(Terms(60.0, 9), tmp_path, "dag.flow", "spark_default", "pool", "queue", (tmp_path / "bundle",))


def read_code(offer: Offer) -> str:
    return build_request(offer, COMMAND, "manifest", {}, os.environ).wanted.code


def test_what_is_as_it_was_is_the_same_code(offer: Offer) -> None:
    assert read_code(offer) == read_code(replace(offer, label="another.dag"))


def test_a_module_that_changes_is_other_code(offer: Offer) -> None:
    before = read_code(offer)
    (offer.roots[0] / "orders.py").write_text("rows = 10")
    assert read_code(offer) != before


def test_another_version_of_an_installed_package_is_other_code(offer: Offer) -> None:
    before = read_code(offer)
    site = offer.cache / "site"
    (site / "shop-1.0.dist-info").rename(site / "shop-1.1.dist-info")
    assert read_code(offer) != before
