"""Every name on the page of the architecture leads to a file and to what is defined there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMES = sorted(set(re.findall(r"airflow_dagsched(?:\.\w+)+", PAGE)))
PATHS = sorted(set(re.findall(r"`((?:[\w]+/)+[\w.]*)`", PAGE)))
ASKED = (
    "groups are formed",
    "a cut is decided",
    "a container is sized",
    "a spill is committed",
    "a mirror's colour is decided",
    "a partition is left out",
    "an executor's host is fixed",
)


PLACEMENT = "airflow_dagsched.placement"
GUIDES = sorted(
    file
    for room in ("high_availability", "reproductions")
    for file in ROOT.joinpath(*PLACEMENT.split("."), room).rglob("__init__.py")
)
"""What leads from the words of KIP-441 to the files."""


def leads_somewhere(name: str) -> bool:
    """Whether the dotted ``name`` is a folder or file of the package, or is defined in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        at = ROOT.joinpath(*parts[:count])
        file = at / "__init__.py" if at.is_dir() else at.with_suffix(".py")
        if file.is_file():
            return defines(ast.parse(file.read_text()).body, parts[count:])
    return False


def defines(body: Iterable[ast.stmt], names: list[str]) -> bool:
    """Whether ``names``, each inside the one before it, are defined in ``body``: imported is not enough."""
    if not names:
        return True
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == names[0]:
            return len(names) == 1 or (isinstance(node, ast.ClassDef) and defines(node.body, names[1:]))
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == names[0] for target in targets):
            return len(names) == 1
    return False


@pytest.mark.parametrize("name", NAMES)
def test_a_name_leads_somewhere(name: str) -> None:
    assert leads_somewhere(name)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_there(path: str) -> None:
    assert (ROOT / path).exists() or (ROOT / "airflow_dagsched" / path).exists()


@pytest.mark.parametrize("question", ASKED)
def test_each_question_is_answered_by_a_function(question: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| where {question} |"))
    answer = re.search(r"`(airflow_dagsched(?:\.\w+)+)\.(\w+)`", row.split("|")[2])
    assert answer is not None
    body = ast.parse(ROOT.joinpath(*answer[1].split(".")).with_suffix(".py").read_text()).body
    assert any(isinstance(node, ast.FunctionDef) and node.name == answer[2] for node in body)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda file: file.parent.name)
def test_a_guide_leads_somewhere(guide: Path) -> None:
    """Its names are of the folder itself, or of placement."""
    here = ".".join(guide.parent.relative_to(ROOT).parts)
    for name in re.findall(r"``([a-z_]\w*(?:\.\w+)+)``", guide.read_text()):
        assert leads_somewhere(f"{here}.{name}") or leads_somewhere(f"{PLACEMENT}.{name}"), name


def test_every_room_is_drawn() -> None:
    for layer in ("model", "plan", "placement", "launch", "spark", "provider"):
        assert f"{layer}/" in PAGE
        for room in (ROOT / "airflow_dagsched" / layer).iterdir():
            if (room / "__init__.py").is_file():
                assert re.search(rf"\b{room.name}\b", PAGE), room


def test_what_is_no_name_is_noticed() -> None:
    assert not leads_somewhere("airflow_dagsched.plan.planner.nothing")
    assert not leads_somewhere("airflow_dagsched.nowhere")
    assert not leads_somewhere("airflow_dagsched.plan.planner.Draft"), "imported there, defined elsewhere"
