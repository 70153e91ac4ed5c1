"""What a launch notices of the code that a warm application runs, and of what else that one has read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.provider.warm.offer import Offer, build_request

COMMAND = (
    "spark-submit", "--master", "local[2]", "--properties-file", "/own/spark.properties", "--load-spark-defaults",
    "host.py",
)  # fmt: skip
OF_SITE = (
    "spark/conf/log4j2.properties", "spark/conf/spark-defaults.conf", "hadoop/core-site.xml", "yarn/yarn-site.xml",
    "a.jar", "classes/log4j2.xml", "lib/b.jar", "java/release", "site.jar",
)  # fmt: skip
"""Files of a site, of its Spark and of its Java."""


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Of a bundle with a module, beside an installed package."""
    for each in ("bundle", "site/shop-1.0.dist-info"):
        (tmp_path / each).mkdir(parents=True)
    (tmp_path / "bundle" / "orders.py").write_text("rows = 1")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    return Offer(Terms(60.0, 9), tmp_path, "dag.flow", "spark_default", "pool", "queue", (tmp_path / "bundle",))


def read_code(offer: Offer, **of_site: Path) -> str:
    """With Spark, Java and the site's folders in the bundle's parent."""
    root = offer.cache
    environment = {
        **os.environ,
        "SPARK_HOME": str(root / "spark"),
        "JAVA_HOME": str(root / "java"),
        "HADOOP_CONF_DIR": str(root / "hadoop"),
        "YARN_CONF_DIR": str(root / "yarn"),
    }
    environment.pop("SPARK_CONF_DIR", None)
    environment |= {name: str(path) for name, path in of_site.items()}
    settings = {
        "spark.driver.extraClassPath": f"{root / 'a.jar'}:{root / 'classes'}",
        "spark.executor.extraClassPath": str(root / "lib" / "*"),
    }
    return build_request(offer, COMMAND, "manifest", settings, environment).wanted.code


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


@pytest.fixture
def on_site(offer: Offer) -> Offer:
    """With all of its files, one of which settings of the site name."""
    for name in (*OF_SITE, "java/bin/java", "spark/jars/core.jar"):
        (offer.cache / name).parent.mkdir(parents=True, exist_ok=True)
        (offer.cache / name).write_text("1")
    (offer.cache / "spark" / "conf" / "spark-defaults.conf").write_text(f"spark.jars {offer.cache / 'site.jar'}\n")
    return offer


@pytest.mark.parametrize("name", OF_SITE)
def test_a_file_of_the_site_that_changes_is_another_application(on_site: Offer, name: str) -> None:
    before = read_code(on_site)
    assert read_code(on_site) == before
    with (on_site.cache / name).open("a") as file:
        file.write("\n# more\n")
    assert read_code(on_site) != before


def test_a_file_more_is_another_application(on_site: Offer) -> None:
    for name in ("hadoop/hive-site.xml", "spark/jars/more.jar"):
        before = read_code(on_site)
        (on_site.cache / name).write_text("1")
        assert read_code(on_site) != before


def test_the_conf_folder_that_is_named_counts(on_site: Offer) -> None:
    conf = on_site.cache / "conf"
    conf.mkdir()
    before = read_code(on_site, SPARK_CONF_DIR=conf)
    (on_site.cache / "spark" / "conf" / "log4j2.properties").write_text("not read")
    assert read_code(on_site, SPARK_CONF_DIR=conf) == before
    (conf / "log4j2.properties").write_text("read")
    assert read_code(on_site, SPARK_CONF_DIR=conf) != before


@pytest.mark.parametrize("folder", ["nowhere", "x" * 5000])
def test_a_folder_that_nobody_can_look_into_stops_no_launch(on_site: Offer, folder: str) -> None:
    named = on_site.cache / folder
    assert read_code(on_site, HADOOP_CONF_DIR=named) == read_code(on_site, HADOOP_CONF_DIR=named)
