"""The archive of classes of one spark-submit: given to its driver where there is one, made for later ones if not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.class_archives.background import start_making
from airflow_dagsched.class_archives.choose import choose_archive
from airflow_dagsched.class_archives.make import Request, request_archive
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.launch.class_archive.recipe import Kind
from airflow_dagsched.launch.class_archive.settings import HERE, give_driver, give_executors
from airflow_dagsched.launch.class_archive.verdict import Verdict
from airflow_dagsched.launch.managers.local.live import is_local
from airflow_dagsched.provider.spec.configuration import has_class_archives, read_cache_dir, read_executor_archive

log = logging.getLogger(__name__)

MADE = frozenset({"missing", "spoiled"})
"""Verdicts after which one is made."""
TOLD = frozenset({"unsafe", "failed", "conf_folder", "class_path"})
"""Verdicts that somebody can do something about."""


@dataclass(eq=False)
class ClassArchive:
    """What a submit has to do with archives."""

    verdict: Verdict = field(default=Verdict("off"))
    wanted: Request | None = None
    """The archive that its driver would have had."""

    def give(
        self, spark_submit: Path, master: str, settings: Mapping[str, str], environment: Mapping[str, str]
    ) -> dict[str, str]:
        """The settings, with archives for driver and executors where there are any; a line in the log at most."""
        self.verdict, self.wanted = Verdict("off"), None
        if not has_class_archives():
            return dict(settings)
        cache_dir = read_cache_dir()
        found = choose_archive(Shelf.of(cache_dir), spark_submit, settings, environment)
        if found.reason in MADE:
            self.wanted = request_archive(cache_dir, spark_submit, settings, environment)
        if found.reason in TOLD:
            log.info("class archive: %s", found)
        self.verdict = found
        kind: Kind = found.kind or "dynamic"
        file = found.detail if found.reason == "used" else ""
        given = give_driver(settings, kind, file) if file else dict(settings)
        # Those of the driver's host and user have the driver's; elsewhere it is what somebody has put there.
        theirs = read_executor_archive() or (file if master.startswith(HERE) else "")
        return give_executors(given, kind, theirs) if theirs and not is_local(master) else given

    def note_good_end(self) -> None:
        """The application has ended well: the archive that it lacked is made, by a process of its own."""
        if self.wanted is None:
            return
        try:
            start_making(self.wanted)
        except OSError as error:
            log.info("class archive: none is made: %s", error)
