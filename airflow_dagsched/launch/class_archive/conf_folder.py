"""Spark's conf folder with files in it: Java archives nothing behind such a folder, so it comes behind the jars.

::

    as it comes     conf/ : jars/*                     spark-defaults.conf read from conf/
    with archive    (no folder) : jars/* : conf/       its settings are in the file of the submit's own

Nothing in Spark's jars has the name of a file that Spark, Hadoop, Hive or Log4j look for in that folder, so each finds
the same one.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from airflow_dagsched.launch.class_archive.host import Host
from airflow_dagsched.launch.protocol.class_path import join_class_paths

DEFAULTS = "spark-defaults.conf"
CONF_DIR, LAST_ON_PATH = "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH"
_FOR_SUBMIT = frozenset({"spark-env.sh", "java-opts"})
"""What spark-submit itself looks for there: a program that may change all else, and options of the driver's Java."""
_LOOKED_FOR_HERE = ("local", "spark://")
"""Masters whose clients take no file out of the folder that ``SPARK_CONF_DIR`` names: YARN's and Kubernetes' do."""


def can_come_last(host: Host, master: str) -> bool:
    """Whether a driver may find the files of its conf folder behind the jars."""
    files = host.conf_files
    return bool(files) and master.startswith(_LOOKED_FOR_HERE) and not _FOR_SUBMIT.intersection(files)


def put_last(host: Host, no_folder: str) -> Host:
    """The host, as a driver sees it whose conf folder comes last.

    :param no_folder: a path where there is nothing.
    """
    return replace(host, conf_folder=no_folder, conf_files=())


def make_environment(host: Host, no_folder: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What changes in the environment of a spark-submit on ``host``, so that its driver's conf folder comes last."""
    return {CONF_DIR: no_folder, LAST_ON_PATH: join_class_paths(environment.get(LAST_ON_PATH, ""), host.conf_folder)}
