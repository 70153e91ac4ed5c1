"""Whether a driver is started with an archive of classes, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from airflow_dagsched.launch.class_archive.host import Host, read_java_version
from airflow_dagsched.launch.class_archive.recipe import (
    DRIVER_DEFAULT,
    DRIVER_EXTRA,
    ENVIRONMENT,
    Kind,
    choose_kind,
    names_archive,
)

Reason = Literal[
    "used", "off", "author", "no_java", "no_spark", "old_java", "conf_folder", "class_path", "missing", "failed",
    "unsafe", "spoiled",
]  # fmt: skip
KEEP_OUT = "chmod go-w it, or name another folder, [dagsched] cache_dir"
"""What helps where others may write."""
SENTENCES: Mapping[Reason, str] = {
    "used": "the driver has it: {}",
    "off": "[dagsched] class_archive is off",
    "author": "the author's Java options say which",
    "no_java": "no Java, or one whose build is not told: {}",
    "no_spark": "no folder of Spark's jars: {}",
    "old_java": "Java {} has none",
    "conf_folder": "Java takes none behind a folder with files: Spark's conf folder {}, which can't come last; keep "
    "nothing in it, or, with a local or standalone master, neither spark-env.sh nor java-opts",
    "class_path": "Java takes none behind a folder: {} on the class path; name the files of its jars instead",
    "missing": "none is there yet: {}",
    "failed": "none could be made: {}; it is tried again in a day, or at once by dagsched class-archive make",
    "unsafe": f"none is used, as others may write it: {{}}; {KEEP_OUT}",
    "spoiled": "it is not the file that was made: {}",
}


class Verdict(Struct, frozen=True):
    """``reason`` says what of it there is, ``detail`` with what."""

    reason: Reason
    detail: str = ""
    kind: Kind | None = None
    """Of archives that Java takes here; None: of none, or nobody has looked."""
    environment: Mapping[str, str] = {}
    """What changes in that of the submit, whose conf folder then comes last."""
    jar: str = ""
    """What the archive wants before all else on the class path; empty: nothing."""

    def __str__(self) -> str:
        return SENTENCES[self.reason].format(self.detail)


class Possible(Struct, frozen=True):
    """A driver on ``host`` may have an archive of this kind."""

    host: Host
    kind: Kind


def find_author_word(settings: Mapping[str, str], environment: Mapping[str, str]) -> Verdict | None:
    """Whether the author, or who runs Airflow, says which archive Java takes."""
    return Verdict("author") if names_archive(list_options(settings, environment)) else None


def list_options(settings: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """All texts of options that the driver's Java has."""
    told = (*(settings.get(name, "") for name in (DRIVER_DEFAULT, DRIVER_EXTRA)), *map(environment.get, ENVIRONMENT))
    return tuple(filter(None, told))


def find_kind(host: Host) -> Kind | None:
    """The kind of archives that its Java takes; None: none, or it is not known."""
    version = read_java_version(host.release)
    return None if version is None else choose_kind(version)


def judge_host(host: Host) -> Possible | Verdict:
    """Whether Java takes an archive there at all."""
    kind = find_kind(host)
    if kind is None:
        version = read_java_version(host.release)
        return Verdict("no_java", host.java) if version is None else Verdict("old_java", str(version))
    if not host.jars:
        return Verdict("no_spark", host.spark_home)
    if host.unfit:
        return Verdict("class_path", host.unfit[0], kind)
    return Verdict("conf_folder", host.conf_folder, kind) if host.conf_files else Possible(host, kind)
