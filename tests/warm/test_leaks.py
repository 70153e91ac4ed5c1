"""What one run leaves the next does not meet, in either order: in one application, unless the run left what nobody can
undo, which ends it.

Each leak is a step that leaves something, and a step that tells whether it meets it. The one that leaves it runs
before, and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.process_names import is_gone, name_process
from tests.warm.kit import Lab, flow_of, open_lab, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.warm]


@dataclass(frozen=True)
class Leak:
    """``leave(spark)`` leaves it; ``meet(spark)`` returns what is met, the same in every application."""

    name: str
    leave: Callable[[Any], Any]
    meet: Callable[[Any], Any]


def of_java(spark: Any) -> Any:
    return spark.sparkContext._jvm


def leave_module(spark: Any) -> None:
    import sys
    import types

    sys.modules["left_module"] = types.ModuleType("left_module")


def meet_module(spark: Any) -> bool:
    import sys

    return "left_module" in sys.modules


def leave_process(spark: Any) -> None:
    import os
    import threading

    os.environ["LEFT_VARIABLE"] = "1"
    os.chdir("/")
    os.umask(0o000)
    threading.Thread(target=threading.Event().wait, name="left-thread", daemon=True).start()


def meet_process(spark: Any) -> list[Any]:
    import os
    import threading

    mask = os.umask(0o022)
    os.umask(mask)
    names = [each.name for each in threading.enumerate()]
    return [os.environ.get("LEFT_VARIABLE"), Path().samefile("/"), mask, "left-thread" in names]


def leave_views(spark: Any) -> None:
    spark.range(3).createOrReplaceTempView("left_view")
    spark.range(3).createOrReplaceGlobalTempView("left_global")


def meet_views(spark: Any) -> list[bool]:
    return [spark.catalog.tableExists("left_view"), spark.catalog.tableExists("global_temp.left_global")]


def leave_settings(spark: Any) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.sparkContext._conf.set("spark.left.setting", "1")
    spark.sparkContext._conf.set("spark.sql.shuffle.partitions", "9")
    of_java(spark).System.setProperty("left.property", "1")
    of_java(spark).java.util.TimeZone.setDefault(of_java(spark).java.util.TimeZone.getTimeZone("Asia/Tokyo"))


def meet_settings(spark: Any) -> list[Any]:
    java = of_java(spark)
    return [
        spark.conf.get("spark.sql.shuffle.partitions"),
        spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo",
        spark.conf.get("spark.left.setting", None),
        java.System.getProperty("left.property"),
        str(java.java.util.TimeZone.getDefault().getID()) == "Asia/Tokyo",
    ]


def leave_kept(spark: Any) -> None:
    spark.range(100).selectExpr("id * 3 as left_kept").persist().count()
    spark.sparkContext.parallelize([1, 2, 3]).persist().count()


def meet_kept(spark: Any) -> list[Any]:
    frame = spark.range(100).selectExpr("id * 3 as left_kept")
    return [
        "InMemory" in frame._jdf.queryExecution().executedPlan().toString(),
        len(spark.sparkContext._jsc.getPersistentRDDs()),
    ]


def leave_properties(spark: Any) -> None:
    spark.sparkContext.setLocalProperty("left.local", "1")
    spark.sparkContext.setJobGroup("left-group", "left")
    spark.sparkContext.addJobTag("left-tag")
    spark.sparkContext.setLogLevel("ERROR")


def meet_properties(spark: Any) -> list[Any]:
    sc = spark.sparkContext
    level = str(of_java(spark).org.apache.logging.log4j.LogManager.getRootLogger().getLevel())
    return [
        sc.getLocalProperty("left.local"),
        sc.getLocalProperty("spark.jobGroup.id"),
        sorted(sc.getJobTags()),
        level == "ERROR",
    ]


def leave_checkpoint(spark: Any) -> None:
    import tempfile

    spark.sparkContext.setCheckpointDir(tempfile.mkdtemp())


def meet_checkpoint(spark: Any) -> Any:
    return spark.sparkContext.getCheckpointDir()


def leave_functions(spark: Any) -> None:
    spark.udf.register("left_function", lambda: 1)


def meet_functions(spark: Any) -> bool:
    return bool(spark.catalog.functionExists("left_function"))


def leave_listener(spark: Any) -> None:
    java = of_java(spark)
    spark.sparkContext._jsc.sc().addSparkListener(java.org.apache.spark.scheduler.StatsReportListener())


def meet_listener(spark: Any) -> int:
    listeners = spark.sparkContext._jsc.sc().listenerBus().listeners()
    return sum("StatsReportListener" in str(listeners.get(at).getClass()) for at in range(listeners.size()))


def leave_worker_state(spark: Any) -> None:
    def mark(rows: Any) -> Any:
        import builtins

        builtins.left_in_worker = True  # type: ignore[attr-defined]
        return rows

    spark.range(8).rdd.mapPartitions(mark).count()


def meet_worker_state(spark: Any) -> bool:
    def look(rows: Any) -> Any:
        import builtins

        return [hasattr(builtins, "left_in_worker")]

    return any(spark.range(8).rdd.mapPartitions(look).collect())


def leave_accumulator(spark: Any) -> None:
    total = spark.sparkContext.accumulator(0)
    spark.sparkContext.parallelize([1, 2, 3]).foreach(total.add)
    spark.sparkContext.broadcast([1, 2, 3])


def meet_accumulator(spark: Any) -> int:
    total = spark.sparkContext.accumulator(0)
    spark.sparkContext.parallelize([1, 2, 3]).foreach(total.add)
    return int(total.value)


def leave_failure_of_logging(spark: Any) -> None:
    import logging

    logging.getLogger().setLevel(logging.CRITICAL)
    logging.disable(logging.CRITICAL)


def meet_failure_of_logging(spark: Any) -> int:
    import logging

    return logging.root.manager.disable


def leave_pandas(spark: Any) -> None:
    import pandas as pd

    pd.set_option("display.max_rows", 7)
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    spark.range(3).toPandas()


def meet_pandas(spark: Any) -> list[Any]:
    import pandas as pd

    return [pd.get_option("display.max_rows"), spark.conf.get("spark.sql.execution.arrow.pyspark.enabled")]


def leave_random(spark: Any) -> None:
    import random

    random.seed(1)


def meet_random(spark: Any) -> bool:
    import random

    state = random.getstate()
    random.seed(1)
    return state == random.getstate()


def open_left_file_system(spark: Any, key: str) -> Any:
    """As Spark opens one for who reads with options: Hadoop keeps it, whatever its settings, by its address."""
    java = of_java(spark)
    conf = java.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    conf.set("fs.left.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    conf.set("fs.left.key", key)
    return java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI("left:///"), conf)


def leave_file_system(spark: Any) -> None:
    open_left_file_system(spark, "left")


def meet_file_system(spark: Any) -> str:
    opened = open_left_file_system(spark, "mine")
    key = str(opened.getConf().get("fs.left.key"))
    if key == "mine":
        opened.close()
    return key


UNDONE = (
    Leak("module", leave_module, meet_module),
    Leak("process", leave_process, meet_process),
    Leak("views", leave_views, meet_views),
    Leak("settings", leave_settings, meet_settings),
    Leak("kept data", leave_kept, meet_kept),
    Leak("local properties and log level", leave_properties, meet_properties),
    Leak("checkpoint folder", leave_checkpoint, meet_checkpoint),
    Leak("functions", leave_functions, meet_functions),
    Leak("listener", leave_listener, meet_listener),
    Leak("Python workers", leave_worker_state, meet_worker_state),
    Leak("accumulators", leave_accumulator, meet_accumulator),
    Leak("logging", leave_failure_of_logging, meet_failure_of_logging),
    Leak("pandas", leave_pandas, meet_pandas),
    Leak("random numbers", leave_random, meet_random),
    Leak("file systems", leave_file_system, meet_file_system),
)


def leave_hadoop(spark: Any) -> None:
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.left.key", "1")


def leave_hadoop_file(spark: Any) -> None:
    """As a site's own file has it."""
    import tempfile

    site = Path(tempfile.mkdtemp(), "other-site.xml")
    site.write_text(
        "<configuration><property><name>fs.s3a.endpoint</name><value>http://left</value></property></configuration>"
    )
    path = of_java(spark).org.apache.hadoop.fs.Path(str(site))
    spark.sparkContext._jsc.hadoopConfiguration().addResource(path)


def leave_no_hadoop(spark: Any) -> None:
    spark.sparkContext._jsc.hadoopConfiguration().unset("io.file.buffer.size")


def leave_file(spark: Any) -> None:
    spark.sparkContext.addFile(__file__)


def leave_table(spark: Any) -> None:
    spark.range(3).write.saveAsTable("left_table")


def leave_query(spark: Any) -> None:
    spark.readStream.format("rate").load().writeStream.format("noop").start()


def leave_zombie(spark: Any) -> None:
    """A thread of the author's is in Java when its process ends."""
    import threading

    threading.Thread(target=lambda: of_java(spark).java.lang.Thread.sleep(60000), daemon=True).start()


def leave_user(spark: Any) -> None:
    users = of_java(spark).org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser("left-user"))


def leave_secret(spark: Any) -> None:
    hadoop = of_java(spark).org.apache.hadoop
    credentials = hadoop.security.Credentials()
    credentials.addSecretKey(hadoop.io.Text("left.key"), bytearray(b"left"))
    hadoop.security.UserGroupInformation.getLoginUser().addCredentials(credentials)


def leave_token(spark: Any) -> None:
    hadoop = of_java(spark).org.apache.hadoop
    token = hadoop.security.token.Token()
    token.setService(hadoop.io.Text("left:8020"))
    hadoop.security.UserGroupInformation.getCurrentUser().addToken(token)


ENDING = {
    "Hadoop settings": leave_hadoop,
    "Hadoop settings of a file": leave_hadoop_file,
    "Hadoop settings that are gone": leave_no_hadoop,
    "another user of Hadoop": leave_user,
    "a secret of Hadoop's user": leave_secret,
    "a token of Hadoop's user": leave_token,
    "files or jars": leave_file,
    "tables in the catalog": leave_table,
    "a streaming query": leave_query,
    "a call into Java": leave_zombie,
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with open_lab(folder, terms=Terms(120.0, 1000)) as lab:
        lab.settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        yield lab


def meet_all(spark: Any) -> dict[str, Any]:
    return {each.name: each.meet(spark) for each in UNDONE}


def leave_all(spark: Any) -> None:
    for each in UNDONE:
        each.leave(spark)


def test_nothing_is_met_of_what_a_run_left(lab: Lab) -> None:
    """Before and after a run that leaves all of it, a run meets what one in an application of its own does."""
    first = lab.run(flow_of(meet_all, dated=True))
    assert first.code == 0, first.output
    left = lab.run(flow_of(leave_all, dated=True))
    assert left.code == 0, left.output
    again = lab.run(flow_of(meet_all, dated=True))
    assert (again.application, again.number) == (first.application, 3), again.output
    assert again.values == first.values


@pytest.mark.parametrize("leak", UNDONE, ids=lambda leak: leak.name)
def test_nothing_is_met_of_one_leak_alone(lab: Lab, leak: Leak) -> None:
    """One may hide another, where all are left at once."""

    def leave(spark: Any) -> None:
        leak.leave(spark)

    before, left, after = (lab.run(flow_of(step, dated=True)) for step in (meet_all, leave, meet_all))
    assert left.code == 0, left.output
    assert after.application == before.application, after.output
    assert after.values == before.values


def test_what_a_run_leaves_is_met_in_it(lab: Lab) -> None:
    """The probes see what they look for: in the run that leaves it each tells something else."""

    def both(spark: Any) -> dict[str, list[Any]]:
        before = meet_all(spark)
        leave_all(spark)
        after = meet_all(spark)
        return {name: [before[name], after[name]] for name in before}

    ran = lab.run(flow_of(both, dated=True))
    assert ran.code == 0, ran.output
    blind = [name for name, (before, after) in ran.values["both"].items() if before == after]
    assert blind == ["accumulators"], ran.values


def leave_sleeping_process(spark: Any) -> list[str]:
    """Names of one that is forgotten, and of what it has started itself."""
    import subprocess

    shell = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    return [name_process(shell.pid), name_process(int(shell.stdout.readline()))]


def test_processes_that_steps_started_end_with_their_run(lab: Lab) -> None:
    left = lab.run(flow_of(leave_sleeping_process, dated=True))
    assert left.code == 0, left.output
    names = left.values["leave_sleeping_process"]
    wait_until(lambda: all(map(is_gone, names)), "what the step started is gone")
    again = lab.run(flow_of(meet_all, dated=True))
    assert (again.application, again.code) == (left.application, 0), again.output


def load_hadoop(spark: Any) -> list[Any]:
    """What is set before a class of Hadoop's is there that reads a file of its own, and then."""
    names = ("yarn.resource-types", "yarn.client.max-nodemanagers-proxies")
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    before = [configuration.get(name) for name in names]
    of_java(spark).org.apache.hadoop.yarn.conf.YarnConfiguration()
    return [before, [configuration.get(name) for name in names]]


def test_what_hadoop_reads_by_itself_ends_nothing(tmp_path: Path) -> None:
    """The file of this class, and a name in another file that it knows as an old one of a setting with a default."""
    site = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "resource-types.xml").write_text(site.format("yarn.resource-types", "gpu"))
    (tmp_path / "hadoop" / "core-site.xml").write_text(site.format("yarn.client.max-nodemanagers-proxies", "7"))
    with open_lab(tmp_path, variables={"HADOOP_CONF_DIR": str(tmp_path / "hadoop")}) as lab:
        first, second = (lab.run(flow_of(load_hadoop, dated=True)) for _ in range(2))
        assert first.values == {"load_hadoop": [[None, "7"], ["gpu", "0"]]}, first.output
        assert second.values == {"load_hadoop": [["gpu", "0"], ["gpu", "0"]]}, second.output
        assert (second.application, second.number) == (first.application, 2)


@pytest.mark.parametrize("name", ENDING)
def test_what_cannot_be_undone_ends_the_application(lab: Lab, name: str) -> None:
    """The run has ended well, and the next one starts cold."""

    def leave(spark: Any) -> None:
        ENDING[name](spark)

    first = lab.run(flow_of(leave, dated=True))
    assert first.code == 0, first.output

    def meet(spark: Any) -> int:
        return 1

    after = lab.run(flow_of(meet, dated=True))
    assert (after.code, after.number) == (0, 1), after.output
    assert after.application != first.application
