"""Whether a driver on this host gets an archive, and which."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from airflow_dagsched.class_archives.look import look_at_host
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.launch.class_archive.conf_folder import can_come_last, make_environment, put_last
from airflow_dagsched.launch.class_archive.host import Host, compute_key
from airflow_dagsched.launch.class_archive.verdict import Possible, Verdict, find_author_word, find_kind, judge_host


def choose_archive(
    shelf: Shelf, spark_submit: Path, master: str, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Verdict:
    """What a submit to ``master`` with ``settings`` in ``environment`` is to tell its driver's Java of archives."""
    said, found = find_author_word(settings, environment), look_at_host(spark_submit, settings, environment)
    if isinstance(found, Verdict):
        return said or found
    if said is not None:
        return replace(said, kind=find_kind(found))  # executors may have one all the same
    host = see_from(shelf, found, master)
    possible = judge_host(host)
    verdict = possible if isinstance(possible, Verdict) else look_on_shelf(shelf, possible)
    is_moved = verdict.reason == "used" and host != found
    return replace(verdict, environment=make_environment(found, host.conf_folder, environment)) if is_moved else verdict


def see_from(shelf: Shelf, host: Host, master: str) -> Host:
    """The host as a driver sees it that has an archive of this shelf."""
    return put_last(host, str(shelf.no_folder)) if can_come_last(host, master) else host


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
    return Verdict("used", str(file), kind, jar="" if note.unsigned is None else note.unsigned.path)
