"""Folders of what a launch task leaves, and of what its steps are made of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.provider.spec.work_dir import parse_local_root

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.spec.run_facts import RunFacts


def locate_group_folder(launch: LaunchSpec, facts: RunFacts) -> Path:
    """Folder of what one launch task leaves in one run: another dataflow of the DAG may have a group of that name, and
    a run that was deleted and made again may have the run's.
    """
    root = parse_local_root(launch.flow.work_dir)
    names = (facts.dag_id, facts.run_id, facts.try_id.incarnation, launch.flow.name, launch.group.id)
    return root.joinpath("runs", *map(escape_key, names))


def make_own_folder(wanted: Path, group: str) -> Path:
    """A folder that nobody had before, ``wanted`` or one named after it: what a driver program writes there is its
    launch's alone.

    Raises :class:`LaunchRefused` where the work folder cannot be written.
    """
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        # ``dag.test()`` repeats a run with its id and its dates, so the name may be taken.
        names = (f"{wanted.name}.{number}" if number > 1 else wanted.name for number in count(1))
        return next(folder for name in names if _is_made(folder := wanted.with_name(name)))
    except OSError as error:
        remedy = "let the user that Airflow's workers run as write the work folder, or name another: work_dir="
        # A full disk may be emptied before the retry; rights, and what is in the way, stay as they are.
        lasting = isinstance(error, (PermissionError, FileExistsError, NotADirectoryError))
        raise LaunchRefused(group, f"the work folder cannot be written: {error}", remedy, not lasting) from error


def _is_made(folder: Path) -> bool:
    try:
        # The umask can only take rights away: at no moment may others write here.
        folder.mkdir(mode=0o755)
    except FileExistsError:
        return False
    return True


def list_bundle_roots(dag_file: str, context: Mapping[str, Any]) -> tuple[Path, ...]:
    """Folders whose modules are the author's: the DAG bundle, else the folder of the DAG file."""
    bundle = getattr(context.get("ti"), "bundle_instance", None)
    found = [Path(str(bundle.path))] if bundle is not None else []
    return tuple(dict.fromkeys([*found, Path(dag_file).parent]))
