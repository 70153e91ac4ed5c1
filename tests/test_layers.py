"""Arrows point inward: who may import whom, told from the source and from what really gets loaded.

A room is a folder of the package's first two levels, or a file beside them. Every import counts: inside a function and
under ``TYPE_CHECKING``, too. Who needs a name only for its types depends on it all the same.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import airflow_dagsched
from tools.code_figures import Module, draw_folders, draw_imports, list_circles, read_modules

ROOMS = """
exclusive
process_names
private_socket
model
placement                                                model
  containers                                             model
  policies          .containers                          model
  high_availability .policies                            model
  reproductions     .high_availability                   model
plan                                                     model placement placement/containers
  rcpsp                                                  model
  simulate                                               model
  checking                                               model
  reasons                                                model
  report            .reasons                             model
  pruning           .reasons .report                     model
  problem           .pruning                             model placement
  costing           .rcpsp .reasons .problem             model placement placement/containers
  grouping          .rcpsp .reasons .report .problem     model
                    .costing
  resident          .problem .costing .grouping          model
  passes            .reasons .report .pruning .problem   model placement placement/containers placement/policies
                    .costing .grouping .resident
  exact             .reasons .problem .costing .grouping model
                    .resident .passes
  replan            .reasons .report .pruning .problem   model
                    .passes
launch                                                   model plan plan/checking
  protocol
  secrecy           .protocol
  retention         .protocol
  streams           .protocol .secrecy
  warm              .protocol
  steps             .protocol                            plan/pruning
  managers          .protocol .secrecy                  model plan plan/pruning plan/problem plan/passes
  planning          .managers                            model plan plan/pruning plan/problem plan/passes
                                                         plan/reasons
  history           .protocol .planning                  model plan plan/reasons plan/grouping plan/replan
  escalation        .protocol .managers .planning        model plan plan/passes
  moves             .protocol                            model plan/grouping plan/problem
  class_archive     .protocol
class_archives                                           launch/class_archive launch/protocol launch/secrecy exclusive
switch                                                   launch/protocol launch/streams
  advising                                               launch/streams switch
  inbox             .advising                            launch/protocol switch
  log               .advising .inbox                     launch/protocol exclusive process_names switch
  comparing         .advising .log                       launch/protocol exclusive switch
  checking
stream_cli                                               switch switch/log switch/comparing switch/checking
class_archive_cli                                        class_archives launch/protocol launch/secrecy
cli                                                      model placement plan plan/simulate plan/checking plan/report
                                                         plan/pruning plan/problem plan/exact plan/replan
                                                         launch/managers stream_cli class_archive_cli
spark
  files                                                  exclusive
  session                                                launch/protocol launch/secrecy
  telling           .files .session                      launch/protocol launch/secrecy launch/steps
  outputs           .files .session                      launch/protocol
  inputs            .files .session .outputs             launch/protocol
  steps             .session .outputs                    launch/protocol launch/steps
  reuse             .files .outputs .inputs .steps       launch/protocol launch/steps
  streams           .files .session .outputs             launch/protocol launch/streams exclusive switch switch/inbox
                                                         switch/log switch/comparing
  driver            .files .session .telling .outputs    launch/protocol launch/secrecy launch/managers launch/steps
                    .inputs .steps .reuse                launch/streams
  stream_driver     .files .session .outputs .steps      launch/protocol launch/secrecy launch/streams switch
                    .streams .driver                     switch/advising switch/log process_names
  training          .session .driver
  warm_driver       .session .driver                     launch/protocol launch/warm private_socket process_names
local                                                    launch/protocol launch/managers launch/streams spark/driver
provider
  following                                              launch/protocol launch/secrecy launch/escalation
  mirrors                                                launch/protocol switch switch/log
  spec                                                   model plan plan/grouping launch/protocol launch/managers
                                                         launch/streams launch/secrecy launch/steps launch/warm
  warm                                                   launch/protocol launch/secrecy launch/warm class_archives
                                                         private_socket process_names
  clusters          .spec .warm                          model plan plan/checking plan/pruning plan/problem
                                                         launch/warm launch/managers launch/planning launch/escalation
  moving                                                 launch/protocol launch/moves
  submission        .spec .clusters .warm                model plan plan/reasons plan/report plan/pruning
                                                         launch/protocol launch/secrecy launch/retention launch/steps
                                                         launch/streams launch/managers launch/class_archive
                                                         class_archives
  runtime           .following .spec .clusters .moving   model plan/checking plan/report plan/pruning plan/problem
                    .submission .warm                    plan/grouping launch/warm launch/protocol launch/secrecy
                                                         launch/retention launch/steps launch/moves launch/managers
                                                         launch/planning launch/history launch/escalation launch
  streaming         .following .mirrors .spec .clusters  model placement placement/high_availability plan plan/problem
                    .submission .runtime                 launch/protocol launch/secrecy launch/managers launch/streams
                                                         launch/planning launch/escalation switch switch/advising
                                                         switch/log
  wiring            .following .mirrors .spec            model plan plan/grouping plan/passes plan/problem
                    .submission .runtime .streaming      launch/planning launch/warm
  authoring         .mirrors .spec .submission .wiring   model placement plan plan/grouping launch/protocol launch/warm
                                                         launch/managers launch/streams local
  commands          .spec .clusters .submission .warm    model plan plan/simulate plan/checking plan/report plan/exact
                    .runtime .wiring .authoring          launch/protocol launch/warm launch/planning launch/retention
                                                         launch/escalation switch switch/advising switch/log
                                                         switch/comparing cli
"""
"""Room, and the rooms it may import: those of its own package first, with a dot, then others. Each is further up.

A package's own files and its rooms know each other (that no circle comes of it is looked at file by file); all know
what is ``FOR_ALL``, and nobody what is at the ``TOP``.
"""
FOR_ALL = ("errors", "version")
TOP = ("airflow_dagsched", "__main__")
"""The public names, and the command."""

ROOT = Path(airflow_dagsched.__file__).parent
PURE = ("model", "plan", "placement", "launch", "switch")
KEPT_OUT = {"airflow", "pyspark", "ortools", "networkx", "sqlglot"}
WHEN_NEEDED = {"cloudpickle", "ortools", "sqlglot"}
"""What a pure file may import in a function: slow to load, or of an extra, and not needed by most dataflows."""
LOADED_FOR_STREAMING = "airflow_dagsched.plan.resident."
ROOM_COLUMNS = 20
"""A line of ``ROOMS`` that begins further right goes on with the one before."""
MODULES = read_modules(ROOT)
GRAPH = draw_imports(MODULES)
FOLDERS = {module.name: module.folder for module in MODULES}


def read_table(text: str) -> dict[str, frozenset[str]]:
    """Room -> rooms it may import, in the order of the lines."""
    table: dict[str, frozenset[str]] = {}
    package = room = ""
    for line in text.strip().splitlines():
        words = line.split()
        if len(line) - len(line.lstrip()) < ROOM_COLUMNS:
            package = package if line.startswith(" ") else words[0]
            room = f"{package}/{words[0]}" if line.startswith(" ") else words[0]
            table[room], words = frozenset(), words[1:]
        table[room] |= {package + "/" + word[1:] if word.startswith(".") else word for word in words}
    return table


def room_of(module: str) -> str:
    folders = FOLDERS[module].split(".")[1:]
    return "/".join(folders[:2]) or module.rpartition(".")[2]


def are_related(one: str, other: str) -> bool:
    """Whether they are one room, or a package and a room in it."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def find_undeclared(graph: nx.DiGraph, table: dict[str, frozenset[str]]) -> list[str]:
    """Imports that the table does not have."""
    found = []
    for source, target in sorted(graph.edges):
        room, other = room_of(source), room_of(target)
        if not (are_related(room, other) or other in FOR_ALL or room in TOP or other in table.get(room, ())):
            found.append(f"{room} -> {other}: {source} imports {target}")
    return found


def find_circles(graph: nx.DiGraph) -> list[list[str]]:
    """Of modules, and of folders."""
    return list_circles(graph) + list_circles(draw_folders(graph, FOLDERS))


def with_import(source: str, target: str) -> nx.DiGraph:
    """The imports there are, and one more."""
    assert {source, target} <= set(GRAPH)
    more = GRAPH.copy()
    more.add_edge(source, target)
    return more


TABLE = read_table(ROOMS)


def test_every_room_is_in_the_table_and_the_table_has_no_other() -> None:
    assert {room_of(module) for module in GRAPH} - {*TOP, *FOR_ALL} == set(TABLE)


def test_rooms_import_what_the_table_says_and_nothing_else() -> None:
    assert find_undeclared(GRAPH, TABLE) == []


def test_every_arrow_of_the_table_is_needed() -> None:
    """Else the table would allow more than there is."""
    used = {(room_of(source), room_of(target)) for source, target in GRAPH.edges}
    assert [(room, other) for room, others in TABLE.items() for other in others if (room, other) not in used] == []


def test_arrows_of_the_table_point_up() -> None:
    """So no circle of rooms can be declared."""
    place = {room: at for at, room in enumerate(TABLE)}
    arrows = [(room, other) for room, others in TABLE.items() for other in others]
    assert [(room, other) for room, other in arrows if place[other] >= place[room]] == []


def test_the_table_keeps_edges_out_of_pure_rooms_and_apart() -> None:
    """What is pure imports no edge; Spark and Airflow share values and a process boundary."""
    package = {room: room.partition("/")[0] for room in TABLE}
    arrows = {(package[room], package[other]) for room, others in TABLE.items() for other in others}
    forbidden = {(one, edge) for one in PURE for edge in ("spark", "provider", "cli", "local")}
    assert arrows & (forbidden | {("spark", "provider"), ("provider", "spark")}) == set()


def test_what_checks_logs_shares_no_code_with_what_writes_them() -> None:
    """Two heads, two implementations."""
    checking = [module for module in GRAPH if room_of(module) == "switch/checking"]
    assert {other for module in checking for other in GRAPH.successors(module)} <= {
        *checking,
        "airflow_dagsched.errors",
    }


def test_there_are_no_circles() -> None:
    assert find_circles(GRAPH) == []


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("model.order", "model.graph"),
        ("launch.protocol.events", "launch.steps.progress"),
        ("launch.managers.executors", "launch.escalation.levels"),
        ("placement.containers", "placement.policies.auto"),
    ],
)
def test_a_new_circle_is_found(source: str, target: str) -> None:
    graph = with_import(f"airflow_dagsched.{source}", f"airflow_dagsched.{target}")
    assert find_circles(graph) != []


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("model.units", "plan.settings"),
        ("plan.checking", "plan.grouping.coarsest"),
        ("launch.protocol.events", "plan.plan_types"),
        ("spark.files", "model.codec"),
    ],
)
def test_an_import_that_is_not_in_the_table_is_found(source: str, target: str) -> None:
    graph = with_import(f"airflow_dagsched.{source}", f"airflow_dagsched.{target}")
    assert len(find_undeclared(graph, TABLE)) == 1


def list_run_imports(tree: ast.AST) -> Iterator[str]:
    """Full names of what is imported anywhere in ``tree`` when it runs: not under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from list_run_imports(node)


@pytest.mark.parametrize("folder", PURE)
def test_a_pure_folder_loads_no_airflow_spark_or_solver(folder: str) -> None:
    modules = [name for name in GRAPH if room_of(name).partition("/")[0] == folder]
    code = f"import sys, importlib; [importlib.import_module(m) for m in {modules}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert modules
    assert loaded & KEPT_OUT == set()


def test_importing_loads_no_planning() -> None:
    """A DAG file is parsed every few seconds: groups are for its dataflows, the rest for command and launch."""
    kept_out = (
        "plan.planner",
        "plan.pruning",
        "plan.rcpsp",
        "plan.simulate",
        "placement",
        "spark",
        "switch",
        "launch.escalation",
    )
    code = (
        "import sys; from airflow_dagsched import SparkDataflow, SparkSqlStep, StreamEpochs, Table\n"
        f"print([name for name in sys.modules if name.startswith(tuple('airflow_dagsched.' + n for n in {kept_out}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "module", [each for each in MODULES if room_of(each.name).partition("/")[0] in PURE], ids=lambda each: each.name
)
def test_pure_files_import_at_the_top_only(module: Module) -> None:
    """But for the solver, which is an extra, and slow to load; and for a room that few plans need."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {name for each in functions for name in list_run_imports(each) if not name.startswith(LOADED_FOR_STREAMING)}
    assert {name.partition(".")[0] for name in names} <= WHEN_NEEDED


def users_of(library: str) -> set[str]:
    """Rooms that import ``library`` anywhere, packages for those in one."""
    users = (each for each in MODULES if any(name.split(".")[0] == library for name in list_run_imports(each.tree)))
    return {room_of(each.name).partition("/")[0] for each in users}


def test_only_the_spark_folder_imports_pyspark() -> None:
    """And ``local.py``, the one way to run steps without Airflow: when called, not when imported."""
    assert users_of("pyspark") == {"spark", "local"}
    code = "import sys, airflow_dagsched.local; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_provider_folder_imports_airflow() -> None:
    assert users_of("airflow") == {"provider"}
