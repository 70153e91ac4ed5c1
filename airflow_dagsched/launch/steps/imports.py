"""What code and files import, and where in the bundle that is."""

from __future__ import annotations

import ast
import dis
from pathlib import Path
from types import CodeType
from typing import NamedTuple


class Import(NamedTuple):
    """One import statement, of one module."""

    level: int
    """Dots before the name."""
    module: str
    names: tuple[str, ...] = ()
    """What is taken from it."""


def list_code_imports(code: CodeType) -> set[Import]:
    """Imports of ``code``, by its byte code: level and names are loaded just before."""
    # A prefix where there are more than 256 constants: it would come between the two.
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    found = {
        Import(steps[place - 2].argval, str(step.argval), steps[place - 1].argval or ())
        for place, step in enumerate(steps)
        if step.opname == "IMPORT_NAME"
    }
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return found.union(*(list_code_imports(const) for const in inner))


def parse_source(content: bytes) -> ast.Module | None:
    """The syntax tree of a file; None where it is no Python."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError):  # ValueError: a NUL in the file
        return None


def list_file_imports(tree: ast.Module | None) -> set[Import]:
    """Imports anywhere in a file."""
    found: set[Import] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            found.update(Import(0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(Import(node.level, node.module or "", tuple(alias.name for alias in node.names)))
    return found


def _resolve_parts(package: str, each: Import) -> list[str]:
    parents = package.split(".") if each.level and package else []
    # One dot is the package itself, each further one its parent.
    return [*parents[: len(parents) - each.level + 1], *filter(None, each.module.split("."))]


def resolve_name(package: str, each: Import) -> str:
    """Full name of the module that is named."""
    return ".".join(_resolve_parts(package, each))


def list_candidates(package: str, each: Import) -> set[str]:
    """Modules that one import runs, or may: the packages around it, and each imported name that may be a module."""
    parts = _resolve_parts(package, each)
    around = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return around | {".".join([*parts, item]) for item in each.names if item != "*"}


def find_file(name: str, roots: tuple[Path, ...]) -> Path | None:
    """The module's file, in the first of ``roots`` that has it."""
    parts = Path(*name.split("."))
    candidates = (root / tail for root in roots for tail in (parts.with_suffix(".py"), parts / "__init__.py"))
    return next((path for path in candidates if path.is_file()), None)
