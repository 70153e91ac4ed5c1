"""What Spark says of its own functions: none that may be another at another time is taken for one that is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.steps.code import Uses
from airflow_dagsched.launch.steps.sql_words import is_self_contained
from airflow_dagsched.launch.steps.static import may_vary

EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
VARYING = ("Nondeterministic", "ExpressionWithRandomSeed", "CurrentTimestampLike")
"""Traits of functions that are not their arguments' alone. What a session knows is beside them: see ``NAMED``."""
NAMED = (
    "current_",
    "localtimestamp",
    "session_user",
    "user",
    "version",
    "curdate",
    "unix_timestamp",
    "reflect",
    "try_reflect",
    "aes_encrypt",
    "try_aes_encrypt",
)


@pytest.fixture(scope="module")
def varying(spark: SparkSession) -> set[str]:
    """Names of built-in functions that vary."""
    java: Any = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    traits = [java.java.lang.Class.forName(f"{EXPRESSIONS}.{name}", False, loader) for name in VARYING]
    found = set()
    for name, kind in functions(java, loader):
        if any(trait.isAssignableFrom(kind) for trait in traits) or name.startswith(NAMED):
            found.add(name)
    return found


def functions(java: Any, loader: Any) -> Iterator[tuple[str, Any]]:
    registry = java.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    names = registry.listFunction().iterator()
    while names.hasNext():
        info = registry.lookupFunction(names.next()).get()
        yield info.getName(), java.java.lang.Class.forName(info.getClassName(), False, loader)


def test_no_text_calls_what_varies(varying: set[str]) -> None:
    assert {"rand", "uuid", "now", "current_date", "input_file_name"} <= varying
    assert {name for name in varying if is_self_contained(f"select {name}() from t")} == set()


def test_no_code_calls_what_varies(varying: set[str]) -> None:
    import pyspark.sql.functions as sf

    offered = {name for name in varying if hasattr(sf, name)}
    assert {name for name in offered if not may_vary(Uses(names={name}))} == set()
