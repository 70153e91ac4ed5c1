"""The facts of a host that its archive of classes depends on: gathered anew at each submit, in a few milliseconds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from airflow_dagsched.class_archives.spark_home import find_java, find_spark_home
from airflow_dagsched.launch.class_archive.conf_folder import CONF_DIR, DEFAULTS
from airflow_dagsched.launch.class_archive.host import Host, Jar
from airflow_dagsched.launch.class_archive.verdict import Verdict
from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH
from airflow_dagsched.launch.secrecy.properties import read_properties

LOADS_DEFAULTS = "--load-spark-defaults"
"""Has spark-submit read ``spark-defaults.conf`` beside a properties file that is named."""


def look_at_host(spark_submit: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> Host | Verdict:
    """What a driver finds here that ``spark_submit`` starts with ``settings`` in ``environment``."""
    java, home = find_java(environment), find_spark_home(spark_submit, environment)
    if java is None:
        return Verdict("no_java", environment.get("JAVA_HOME", "java"))
    if home is None:
        return Verdict("no_spark", str(spark_submit))
    conf = _find_conf_folder(home, environment)
    entries = [entry for entry in settings.get(DRIVER_CLASS_PATH, "").split(os.pathsep) if entry]
    try:
        return _describe_host(java, home, conf, entries)
    except OSError as error:
        return Verdict("no_java" if error.filename == str(find_release(java)) else "no_spark", str(error.filename))


def read_site_settings(spark_submit: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What ``spark-defaults.conf`` says; nothing where there is none."""
    home = find_spark_home(spark_submit, environment)
    try:
        text = (_find_conf_folder(home, environment) / DEFAULTS).read_text("utf-8") if home is not None else ""
    except (OSError, UnicodeDecodeError):
        return {}
    # Others Spark leaves out, too.
    return {name: value for name, value in read_properties(text).items() if name.startswith("spark.")}


def _find_conf_folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get(CONF_DIR) or home / "conf")


def look_again(host: Host) -> Host | None:
    """The same Java, Spark and class path as they are now; None where any of it is gone."""
    entries = [*(jar.path for jar in host.extra), *host.unfit]
    try:
        return _describe_host(Path(host.java), Path(host.spark_home), Path(host.conf_folder), entries)
    except OSError:
        return None


def _describe_host(java: Path, home: Path, conf: Path, entries: Iterable[str]) -> Host:
    return Host(
        java=str(java),
        release=find_release(java).read_text("utf-8", "replace"),
        spark_home=str(home),
        jars=tuple(_list_jars((home / "jars").iterdir())),
        conf_folder=str(conf),
        conf_files=tuple(sorted(each.name for each in conf.iterdir())) if conf.is_dir() else (),
        extra=tuple(read_jar(Path(entry)) for entry in entries if Path(entry).is_file()),
        unfit=tuple(entry for entry in entries if not Path(entry).is_file()),
    )


def find_release(java: Path) -> Path:
    """The file that names the build of the Java whose program this is."""
    return java.parent.parent / "release"


def _list_jars(paths: Iterable[Path]) -> Iterator[Jar]:
    return (read_jar(path) for path in sorted(paths) if path.suffix.lower() == ".jar")


def read_jar(path: Path) -> Jar:
    """What Java looks at of it. Raises ``OSError``."""
    status = path.stat()
    return Jar(str(path), status.st_size, int(status.st_mtime))
