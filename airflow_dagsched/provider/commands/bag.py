"""The DAGs of a command's argument, read from their files: Airflow's database is neither asked nor written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.clusters.planner_hook import list_dataflows
from airflow_dagsched.provider.spec.hints import suggest_name

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow


def find_flows(dag: str) -> list[SparkDataflow]:
    """The dataflows of a DAG by its id, or of all DAGs of a file.

    Raises :class:`InvalidInput` where there is no such DAG, its file cannot be imported, or it has no dataflow.
    """
    found = _read_file(dag) if Path(dag).is_file() else [_find_by_id(dag, _read_bundles())]
    flows = [cast("SparkDataflow", flow) for each in found for flow in list_dataflows(each)]
    if not flows:
        raise InvalidInput(f"DAG {dag!r}", "", "has no dataflow")
    return flows


def _read_file(path: str) -> list[Any]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(Path(path))
    if bag.import_errors:
        raise InvalidInput(path, "", f"cannot be imported: {_extract_last_line(*bag.import_errors.values())}")
    return list(bag.dags.values())


def _find_by_id(dag_id: str, bags: Iterable[DagBag]) -> Any:
    names: list[str] = []
    broken: dict[str, str] = {}
    for bag in bags:
        if dag_id in bag.dags:
            return bag.dags[dag_id]
        # Perhaps in the next bundle; and if in none, the id may be in a file that cannot be imported.
        names += bag.dags
        broken.update(bag.import_errors)
    hints = [hint for hint in (suggest_name(dag_id, names),) if hint]
    hints += [
        f"{Path(file).name} cannot be imported: {_extract_last_line(error)}" for file, error in sorted(broken.items())
    ]
    raise InvalidInput(f"DAG {dag_id!r}", "", f"there is none of that id{''.join(f'; {hint}' for hint in hints)}")


def _read_bundles() -> Iterator[DagBag]:
    """The DAGs of each bundle that Airflow is configured with."""
    # Airflow's own look-up by id (``get_bagged_dag``) would also write all it reads to the database.
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag

    for bundle in DagBundlesManager().get_all_dag_bundles():
        bundle.initialize()
        yield BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)


def _extract_last_line(error: str, *_: str) -> str:
    """Of a traceback: what was raised."""
    return error.strip().splitlines()[-1]
