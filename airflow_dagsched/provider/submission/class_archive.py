"""The archive of classes of one spark-submit: given to its driver where there is one, made for later ones if not."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.class_archives.background import start_making
from airflow_dagsched.class_archives.choose import choose_archive
from airflow_dagsched.class_archives.look import read_site_settings
from airflow_dagsched.class_archives.make import Request, request_archive
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.launch.class_archive.recipe import Kind, names_report
from airflow_dagsched.launch.class_archive.settings import HERE, give_driver, give_executors
from airflow_dagsched.launch.class_archive.verdict import Verdict, list_options
from airflow_dagsched.launch.managers.local.live import is_local
from airflow_dagsched.provider.spec.configuration import has_class_archives, read_cache_dir, read_executor_archive

log = logging.getLogger(__name__)

MADE = frozenset({"missing", "spoiled"})
"""Verdicts after which one is made."""
TOLD = frozenset({"unsafe", "failed", "conf_folder", "class_path"})
"""Verdicts that somebody can do something about."""
CRASHES = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGSEGV})
"""By which Java ends over a file that it maps and that is no longer what it was: it does not look at all of it."""
JAVA_CRASHED = "# A fatal error has been detected by the Java Runtime Environment"
"""Begins a line that Java prints as it ends so."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a submit with archives is started with."""

    settings: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """What changes in its environment; then its settings are all, those of ``spark-defaults.conf`` among them."""


@dataclass(eq=False)
class ClassArchive:
    """What a submit has to do with archives."""

    wanted: Request | None = None
    """The archive that its driver would have had."""
    used: Path | None = None
    """The file that it has."""

    def give(
        self,
        spark_submit: Path,
        master: str,
        settings: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        has_site: bool = True,
    ) -> Given:
        """Archives for driver and executors where there are any; a line in the log at most.

        :param has_site: whether ``spark-defaults.conf`` counts, too.
        """
        self.wanted = self.used = None
        if not has_class_archives():
            return Given(settings)
        cache_dir = read_cache_dir()
        site = read_site_settings(spark_submit, environment) if has_site else {}
        whole = {**site, **settings}
        found = choose_archive(Shelf.of(cache_dir), spark_submit, master, whole, environment)
        if found.reason in MADE:
            self.wanted = request_archive(cache_dir, spark_submit, master, whole, environment)
        self.used = Path(found.detail) if found.reason == "used" else None
        if found.reason in TOLD:
            log.info("class archive: %s", found)
        report = self._choose_report(whole, environment)
        given = _add_options(whole, found, master, report)
        if found.environment:
            return Given(given, found.environment)
        return Given({name: value for name, value in given.items() if name in settings or value != site.get(name)})

    def _choose_report(self, settings: Mapping[str, str], environment: Mapping[str, str]) -> str:
        """The file that tells of a crash of its Java; empty: that is not ours to say."""
        if self.used is None or names_report(list_options(settings, environment)):
            return ""
        return str(Shelf(self.used.parent).report)

    def drop_broken(self, returncode: int, has_told: bool) -> bool:
        """Take the driver's archive away if Java has crashed with it; whether it had one and has.

        :param has_told: whether Java has printed ``JAVA_CRASHED``.
        """
        # spark-submit becomes Java, whose own signal is negative here. 128 and a signal's number is how Java passes on
        # what its Python died of, but also how a relay, or a site's own script around spark-submit, says it of Java.
        number = returncode - 128 if returncode > 128 and has_told else -returncode
        if self.used is None or number not in CRASHES:
            return False
        shelf, key = Shelf(self.used.parent), self.used.stem
        with suppress(OSError):
            shelf.remove(key)
        shelf.note_failure(key, f"Java crashed with it ({signal.Signals(number).name})")
        return True

    def make_wanted(self) -> None:
        """Have the archive made that the driver lacked, if it did, by a process of its own."""
        if self.wanted is None:
            return
        try:
            # Here, for a maker that can't write can't say so either: each run would start one in vain.
            Shelf.of(Path(self.wanted.cache_dir)).open()
            start_making(self.wanted)
        except OSError as error:
            log.info("class archive: none is made: %s: %s", error.filename, error.strerror)


def _add_options(settings: Mapping[str, str], found: Verdict, master: str, report: str) -> Mapping[str, str]:
    kind: Kind = found.kind or "dynamic"
    file = found.detail if found.reason == "used" else ""
    given = give_driver(settings, kind, file, found.jar, report) if file else settings
    # Executors of the driver's host and user have the driver's; elsewhere it is what somebody has put there.
    named = read_executor_archive()
    if named and not is_local(master):
        return give_executors(given, kind, named)
    return give_executors(given, kind, file, found.jar) if file and master.startswith(HERE) else given
