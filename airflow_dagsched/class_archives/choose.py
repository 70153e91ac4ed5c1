"""Whether a driver on this host gets an archive, and which."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from airflow_dagsched.class_archives.look import look_at_host
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.launch.class_archive.host import compute_key
from airflow_dagsched.launch.class_archive.verdict import Possible, Verdict, find_author_word, judge_host


def choose_archive(
    shelf: Shelf, spark_submit: Path, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Verdict:
    """What ``spark_submit`` with ``settings`` in ``environment`` is to tell its driver's Java of archives."""
    if (said := find_author_word(settings, environment)) is not None:
        return said
    host = look_at_host(spark_submit, settings, environment)
    possible = host if isinstance(host, Verdict) else judge_host(host)
    return possible if isinstance(possible, Verdict) else look_on_shelf(shelf, possible)


def look_on_shelf(shelf: Shelf, possible: Possible) -> Verdict:
    """Whether the archive is there, and can be believed."""
    key, kind = compute_key(possible.host), possible.kind
    note = shelf.read_note(key)
    if note is None:
        failure = shelf.read_failure(key)
        is_over = failure is None or failure.is_over(time.time())
        return Verdict("missing", key, kind) if is_over or failure is None else Verdict("failed", failure.reason, kind)
    file = shelf.locate(key)
    if not shelf.is_as_noted(key, note):
        return Verdict("spoiled", str(file), kind)
    if stranger := shelf.find_stranger(key):
        return Verdict("unsafe", stranger, kind)
    shelf.note_use(key)
    return Verdict("used", str(file), kind)
