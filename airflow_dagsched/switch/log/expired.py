"""What may go of all streams in a work dir, and from beside their tables: looks, and removes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.keys import name_hidden_folder
from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.switch.drafts import STREAMS, name_drafts_folder
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.leases import list_held
from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.log.spawned import is_starting
from airflow_dagsched.switch.log.standbys import list_standbys
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY, EpochPlaces, FlowPlaces
from airflow_dagsched.switch.retention import can_inboxes_go, choose_drafts, choose_epochs, choose_standbys
from airflow_dagsched.switch.story import Story


@dataclass(frozen=True, slots=True)
class ExpiredStreams:
    """What may be removed, and why of some flows nothing may."""

    paths: tuple[Path, ...]
    troubles: tuple[tuple[Path, str], ...] = ()


def find_expired_streams(work_dir: Path, now: float, keep_s: float) -> ExpiredStreams:
    """What may go at ``now``, seconds since 1970. Of a flow whose log can't be read nothing may."""
    paths: list[Path] = []
    troubles: list[tuple[Path, str]] = []
    for folder in sorted(work_dir.glob("streams/*/*")):
        try:
            paths += _list_expired(FlowPlaces(folder), now, keep_s)
        except (DagschedError, OSError) as error:
            troubles.append((folder, str(error)))
    return ExpiredStreams(tuple(paths), tuple(troubles))


def _list_expired(flow: FlowPlaces, now: float, keep_s: float) -> list[Path]:
    log = FlowLog(flow.log)
    log.read()
    folders = _describe_folders(each for each in flow.folder.glob("epochs/*") if each.is_dir())
    # Leases last: who has begun by now is in the log that was read, or holds one.
    held = list_held(flow, log.story.epochs, now)
    going = choose_epochs(log.story, folders, held, now, keep_s)
    waited = _describe_folders(list_standbys(flow))
    idle = choose_standbys(log.story, waited, held | list_held(flow, (STANDBY,), now), now, keep_s)
    return [
        *(path for name in idle.private if (path := flow.standbys / name / "private").exists()),
        *(flow.standbys / name for name in idle.folders),
        *_list_drafts(flow, log.story, folders),
        *(path for name in going.private if (path := flow.name_epoch(name).private).exists()),
        *(flow.name_epoch(name).folder for name in going.folders),
        *_list_inboxes(flow, log.story, now, keep_s),
        *(each for each in flow.log.glob(".draft-*") if each.lstat().st_mtime < now - keep_s),
    ]


def _list_inboxes(flow: FlowPlaces, story: Story, now: float, keep_s: float) -> tuple[Path, ...]:
    """All inboxes of the flow and what fills them, or nothing: one without the other is of no use."""
    there = tuple(each for each in (flow.inboxes, flow.inbox_service.folder) if each.is_dir())
    changed_at = max(map(_find_newest, there), default=0.0)
    is_held = bool(list_held(flow, (INBOX_SERVICE,), now)) or is_starting(flow.inbox_service, now)
    return there if can_inboxes_go(story, is_held, changed_at, now, keep_s) else ()


def _describe_folders(folders: Iterable[Path]) -> dict[str, tuple[str, float]]:
    """Name of each folder of an epoch or a standby -> the application that was started last from it, and its age."""
    return {each.name: (_find_application(each), _find_newest(each)) for each in folders}


def _find_application(folder: Path) -> str:
    sign = read_sign(EpochPlaces(folder))
    return sign.application if sign else ""


def _list_drafts(flow: FlowPlaces, story: Story, epochs: Iterable[str]) -> Iterator[Path]:
    tables = {table for name in epochs for table in _list_tables(flow.name_epoch(name).manifest)}
    for table in sorted(tables):
        place = Path(name_hidden_folder(table)) / STREAMS / name_drafts_folder(flow)
        names = sorted(each.name for each in place.iterdir()) if place.is_dir() else []
        yield from (place / name for name in choose_drafts(story, names))


def _list_tables(manifest: Path) -> Iterator[str]:
    """Folders of the tables of this machine that an epoch writes, without links in their paths."""
    queries = _read_object(manifest).get("queries")
    writes = [_get_object(each, "writes") for each in queries] if isinstance(queries, list) else []
    for each in writes:
        location = str(each.get("location") or "")
        plain = location.removeprefix("file:").removeprefix("//") if location.startswith("file:") else location
        if plain.startswith("/"):
            yield os.path.realpath(plain)


def _get_object(raw: Any, key: str) -> dict[str, Any]:
    """What JSON has under the key, if that is an object; else an empty one."""
    found = raw.get(key) if isinstance(raw, dict) else None
    return found if isinstance(found, dict) else {}


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file; empty if it is gone or torn."""
    try:
        raw = load_json(path.read_text("utf-8", "surrogateescape"))
    except (FileNotFoundError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _find_newest(folder: Path) -> float:
    """When something in the folder was last changed, in seconds since 1970."""
    # What a driver prints changes its file, and no folder.
    return max(each.lstat().st_mtime for each in (folder, *folder.iterdir(), *folder.glob("output/*")))
