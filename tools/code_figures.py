"""``python tools/code_figures.py [--details]``: how the package reads, counted, with what each count should be.

What is counted:

- a *name* is a function's or method's, without leading underscores; dunder methods, overrides that Airflow or a
  Protocol names, and lambdas' names do not count. It begins with a verb if its first word is one of ``VERBS``, or if it
  is a predicate (``is_``, ``has_``, ``may_`` ...). ``--details`` prints those that do not, and where the rest is.
- a function's *lines* are those of its body without its docstring.
- a *circle* is a strongly connected set of modules, or of folders, by any import: also under ``TYPE_CHECKING``, also
  inside functions. A folder and the folders inside it are one neighbour to another folder, and none to each other.
- a *comment* is a line, or the end of one, that begins with ``#``, but for what tools read.
- a *duplicate* is ten lines that are equal in two places, blank lines and imports left out.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "airflow_dagsched"
WINDOW = 10
PREDICATES = frozenset(
    {"are", "can", "covers", "does", "fits", "has", "holds", "is", "may", "must", "needs", "should", "was", "were"}
)
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text().split())
READ_BY_TOOLS = ("# noqa", "# type:", "# fmt:", "# pragma", "#!", "# ruff:", "# mypy:")
GIVEN_NAMES = frozenset(
    {
        "cleanup",
        "defer",
        "emit",
        "execute",
        "flush",
        "get_conn",
        "get_leaves",
        "get_link",
        "get_roots",
        "get_template_env",
        "initialize",
        "main",
        "on_kill",
        "poke",
        "readable",
        "resolve_template_files",
        "run",
        "schedule",
        "seekable",
        "serialize",
        "set_downstream",
        "set_upstream",
        "update_relative",
        "visit",
        "writable",
        "write",
    }
)
"""Names that somebody else gave: Airflow, Spark, io, a Protocol of the docs."""


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def folder(self) -> str:
        """The package it is in; of an ``__init__`` itself."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    value: float
    limit: str
    holds: bool


Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_modules(folder: Path = PACKAGE) -> tuple[Module, ...]:
    """All files of the package, in order of their paths."""
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    return tuple(Module(path, text, ast.parse(text)) for path, text in texts.items())


def list_functions(module: Module) -> Iterator[Function]:
    """Functions and methods, also those inside others."""
    yield from (node for node in ast.walk(module.tree) if isinstance(node, Function))


def count_body_lines(function: Function) -> int:
    """Lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def list_own_names(modules: Iterable[Module]) -> list[str]:
    """Names of functions that are ours to choose."""
    names = [node.name for module in modules for node in list_functions(module)]
    return [name.lstrip("_") for name in names if not name.startswith("__") and name not in GIVEN_NAMES]


def begins_with_verb(name: str) -> bool:
    """Whether the first word of a name is a verb, or makes a predicate."""
    first = name.split("_", maxsplit=1)[0]
    return first in VERBS or first in PREDICATES


def list_imports(module: Module) -> Iterator[str]:
    """Full names of what is imported anywhere in a file."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def draw_imports(modules: Iterable[Module]) -> nx.DiGraph:
    """Module -> module it imports anything of."""
    known = {module.name: module for module in modules}
    graph = nx.DiGraph()
    graph.add_nodes_from(known)
    for module in known.values():
        for name in list_imports(module):
            target = name if name in known else name.rpartition(".")[0]
            if target in known and target != module.name:
                graph.add_edge(module.name, target)
    return graph


def draw_folders(graph: nx.DiGraph, folder_of: Mapping[str, str]) -> nx.DiGraph:
    """Folder -> folder, at the level where their paths part."""
    folders = nx.DiGraph()
    for source, target in graph.edges:
        mine, other = folder_of[source].split("."), folder_of[target].split(".")
        depth = next((at for at, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), None)
        if depth is not None:
            folders.add_edge(".".join(mine[: depth + 1]), ".".join(other[: depth + 1]))
    return folders


def list_circles(graph: nx.DiGraph) -> list[list[str]]:
    """Strongly connected sets of more than one node."""
    return [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]


def count_comments(module: Module) -> int:
    """Comments that people read."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return sum(not comment.startswith(READ_BY_TOOLS) for comment in comments)


def count_code_lines(module: Module) -> int:
    """Lines that hold anything but blanks, comments and docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    starts = True
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        is_docstring = starts and token.type == tokenize.STRING
        if token.type not in skipped and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        starts = token.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL} or (
            starts and token.type == tokenize.COMMENT
        )
    return len(lines)


def list_public(module: Module) -> Iterator[ast.Module | ast.ClassDef | Function]:
    """Module, classes and functions that others use: those without an underscore, at the top or in such a class."""
    yield module.tree
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (each for each in node.body if isinstance(each, Function) and not each.name.startswith("_"))


def list_duplicates(modules: Iterable[Module]) -> dict[tuple[str, ...], list[str]]:
    """Ten lines -> where they are, of those that are in two places."""
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for module in modules:
        lines = [(at, line.strip()) for at, line in enumerate(module.text.splitlines(), 1) if line.strip()]
        lines = [(at, line) for at, line in lines if not line.startswith(("import ", "from "))]
        for start in range(len(lines) - WINDOW + 1):
            window = tuple(line for _, line in lines[start : start + WINDOW])
            places[window].append(f"{module.name}:{lines[start][0]}")
    return {window: found for window, found in places.items() if len(found) > 1}


def measure(modules: tuple[Module, ...]) -> tuple[Figure, ...]:
    """Every count, with what it should be."""
    names = list_own_names(modules)
    lines = sorted(count_body_lines(each) for module in modules for each in list_functions(module))
    files = [len(module.text.splitlines()) for module in modules]
    folders = [len(list(folder.glob("*.py"))) for folder in {module.path.parent for module in modules}]
    graph = draw_imports(modules)
    circles = list_circles(graph) + list_circles(draw_folders(graph, {each.name: each.folder for each in modules}))
    code = sum(count_code_lines(module) for module in modules)
    public = [node for module in modules for node in list_public(module)]
    documented = sum(ast.get_docstring(node) is not None for node in public)
    single = 100 * sum("_" not in name for name in names) / len(names)
    verbs = 100 * sum(begins_with_verb(name) for name in names) / len(names)
    comments = 100 * sum(count_comments(module) for module in modules) / code
    p90, docs = lines[int(len(lines) * 0.9)], 100 * documented / len(public)
    return (
        at_most("lines of the package", sum(files), 32_000),
        at_most("one-word function names, %", single, 30),
        at_least("function names that begin with a verb, %", verbs, 60),
        at_most("lines of a function, median", statistics.median(lines), 8),
        at_most("lines of a function, 90th percentile", p90, 25),
        at_most("lines of the longest function", lines[-1], 50),
        at_most("lines of the longest file", max(files), 400),
        at_most("files in the fullest folder", max(folders), 15),
        at_most("circles of imports, modules and folders", len(circles), 0),
        at_least("comments per 100 lines of code", comments, 4),
        at_least("public names with a docstring, %", docs, 95),
        at_most("ten equal lines in two places", len(list_duplicates(modules)), 0),
    )


def at_most(what: str, value: float, limit: float) -> Figure:
    """A count that should be low."""
    return Figure(what, value, f"<= {limit:,g}", value <= limit)


def at_least(what: str, value: float, limit: float) -> Figure:
    """A count that should be high."""
    return Figure(what, value, f">= {limit:,g}", value >= limit)


def print_table(figures: Iterable[Figure]) -> None:
    """One line a figure."""
    for figure in figures:
        print(f"{figure.what:<44} {figure.value:>9,.1f}   {figure.limit:<10} {'' if figure.holds else 'NOT YET'}")


def print_details(modules: tuple[Module, ...]) -> None:
    """What to change: names without a verb, circles, duplicates, missing docstrings."""
    graph = draw_imports(modules)
    for circle in list_circles(graph) + list_circles(draw_folders(graph, {each.name: each.folder for each in modules})):
        print("circle:", *circle)
    for places in list_duplicates(modules).values():
        print("twice:", *places)
    for module in modules:
        for node in list_public(module):
            if ast.get_docstring(node) is None:
                print(f"no docstring: {module.name}", getattr(node, "name", ""))
        for function in list_functions(module):
            name = function.name.lstrip("_")
            if not function.name.startswith("__") and function.name not in GIVEN_NAMES and not begins_with_verb(name):
                print(f"no verb: {module.name}:{function.lineno} {function.name}")


def main(arguments: list[str]) -> int:
    """Print the table; 1 if a figure is not what it should be."""
    modules = read_modules()
    if "--details" in arguments:
        print_details(modules)
    figures = measure(modules)
    print_table(figures)
    return int(not all(figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
