"""Arrows point inward: who may import whom, told from the source and from what really gets loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import airflow_dagsched

ROOT = Path(airflow_dagsched.__file__).parent
PURE = ("model", "plan", "placement", "launch")
KEPT_OUT = {"airflow", "pyspark", "ortools", "networkx", "sqlglot"}
WHEN_NEEDED = {"cloudpickle", "ortools", "sqlglot"}
"""What a pure file may import in a function: slow to load, or of an extra, and not needed by most dataflows."""
LOADED_FOR_STREAMING = "airflow_dagsched.plan.resident."
FILES = sorted(ROOT.rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def folder_of(file: Path) -> str:
    parts = file.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of what is imported anywhere in ``tree``; types alone (``if TYPE_CHECKING``) do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node)


def imported(file: Path) -> list[str]:
    return list(imports(ast.parse(file.read_text())))


@pytest.mark.parametrize("folder", PURE)
def test_a_pure_folder_loads_no_airflow_spark_or_solver(folder: str) -> None:
    modules = [module_of(file) for file in FILES if folder_of(file) == folder]
    code = f"import sys, importlib; [importlib.import_module(m) for m in {modules}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert modules
    assert loaded & KEPT_OUT == set()


def test_importing_loads_no_planning() -> None:
    """A DAG file is parsed every few seconds: groups are for its dataflows, the rest for command and launch."""
    kept_out = (
        "plan.groups",
        "plan.planner",
        "plan.prune",
        "plan.rcpsp",
        "plan.simulate",
        "placement",
        "spark",
        "launch.live",
    )
    code = (
        "import sys; from airflow_dagsched import SparkDataflow, SparkSqlStep, Table\n"
        f"print([name for name in sys.modules if name.startswith(tuple('airflow_dagsched.' + n for n in {kept_out}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_there_are_no_import_cycles() -> None:
    known = {module_of(file) for file in FILES}
    graph = nx.DiGraph()
    for file in FILES:
        for name in imported(file):
            target = name if name in known else name.rpartition(".")[0]
            if target in known:
                graph.add_edge(module_of(file), target)
    assert len(graph) > len(PURE)
    assert list(nx.simple_cycles(graph)) == []


@pytest.mark.parametrize("file", [file for file in FILES if folder_of(file) in PURE], ids=module_of)
def test_pure_files_import_at_the_top_only(file: Path) -> None:
    """But for the solver, which is an extra, and slow to load; and for a room that few plans need."""
    tree = ast.parse(file.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {name for function in functions for name in imports(function) if not name.startswith(LOADED_FOR_STREAMING)}
    assert {name.partition(".")[0] for name in names} <= WHEN_NEEDED


def users_of(library: str) -> set[str]:
    """Files, relative to the package, that import ``library`` anywhere."""
    return {
        str(file.relative_to(ROOT)) for file in FILES if any(name.split(".")[0] == library for name in imported(file))
    }


def test_only_the_spark_folder_imports_pyspark() -> None:
    """And ``local.py``, the one way to run steps without Airflow: when called, not when imported."""
    assert {file for file in users_of("pyspark") if not file.startswith("spark/")} <= {"local.py"}
    code = "import sys, airflow_dagsched.local; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_provider_folder_imports_airflow() -> None:
    assert [file for file in users_of("airflow") if not file.startswith("provider/")] == []


def test_spark_and_provider_do_not_import_each_other() -> None:
    """They share values and a process boundary."""
    for one, other in (("spark", "provider"), ("provider", "spark")):
        names = [name for file in FILES if folder_of(file) == one for name in imported(file)]
        assert names
        assert [name for name in names if name.startswith(f"airflow_dagsched.{other}")] == []


def test_pure_folders_import_no_edge() -> None:
    names = [name for file in FILES if folder_of(file) in PURE for name in imported(file)]
    edges = ("airflow_dagsched.spark", "airflow_dagsched.provider")
    assert [name for name in names if name.startswith(edges)] == []
