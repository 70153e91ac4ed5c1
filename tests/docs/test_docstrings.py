"""What docstrings of the package promise: their examples run, and the names in them lead somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERRORS = ROOT / "airflow_dagsched" / "errors.py"
"""What may be raised is named wherever it is."""
FILES = sorted(ROOT.glob("airflow_dagsched/**/*.py"))
REFERENCE = re.compile(r":(?:func|meth|class):`~?([^`]+)`")
WITH_EXAMPLES = [file for file in FILES if ">>> " in file.read_text()]


def name_module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def list_names(tree: ast.AST) -> set[str]:
    """What a file defines or imports, whatever class it is in."""
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined | {
        alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }


DEFINED = {file: list_names(ast.parse(file.read_text())) for file in FILES}


def leads_somewhere(reference: str, file: Path) -> bool:
    """Whether ``file`` has such a name, or there is such an error; of a dotted one, whether its module or class has."""
    *path, name = reference.split(".")
    if not path:
        return name in DEFINED[file] | DEFINED[ERRORS]
    return any(name in names and (path[-1] == other.stem or path[-1] in names) for other, names in DEFINED.items())


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=name_module)
def test_examples_run(file: Path) -> None:
    ran = doctest.testmod(importlib.import_module(name_module(file)))
    assert ran.attempted
    assert not ran.failed


def test_references_lead_somewhere() -> None:
    references = [(file, found) for file in FILES for found in REFERENCE.findall(file.read_text())]
    assert references
    assert [f"{name_module(file)}: {found}" for file, found in references if not leads_somewhere(found, file)] == []
