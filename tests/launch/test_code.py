"""The fingerprint changes with what a step would do, and with nothing else."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from airflow_dagsched.launch.steps.code import locate_function, read_code

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """``load(source, name)``: write a module of the bundle and import it afresh."""
    made: list[str] = []

    def load_module(source: str, name: str = "dag_file") -> ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        made.append(name)
        exec(compile(file.read_text(), str(file), "exec"), vars(module))  # no stale byte code of the same second
        return module

    yield load_module
    for name in made:
        sys.modules.pop(name, None)


def fingerprint(function: Any, arguments: Any, roots: tuple[Path, ...]) -> str:
    return read_code(function, arguments, roots).fingerprint


def of(load: Load, source: str, tmp_path: Path, arguments: Any = None) -> str:
    return fingerprint(load(source).step, arguments or {}, (tmp_path,))


PLAIN = "def step(rows):\n    return rows.where('a > 1')\n"


def test_comments_lines_and_names_of_files_do_not_count(load: Load, tmp_path: Path) -> None:
    moved = "\n\n# moved\n" + PLAIN.replace("return", "return  ")
    assert of(load, PLAIN, tmp_path) == of(load, moved, tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("1", "2"),
        PLAIN.replace("where", "filter"),
        "def step(rows, extra=3):\n    return rows.where('a > 1')\n",
    ],
)
def test_code_and_defaults_count(load: Load, tmp_path: Path, changed: str) -> None:
    assert of(load, PLAIN, tmp_path) != of(load, changed, tmp_path)


def test_closures_and_globals_count(load: Load, tmp_path: Path) -> None:
    """A limit the function closes over, and a module-level constant it reads."""
    closure = (
        "def make(limit):\n    def step(rows):\n        return rows.limit(limit)\n    return step\nstep = make({})\n"
    )
    constant = "LIMIT = {}\ndef step(rows):\n    return rows.limit(LIMIT)\n"
    for source in (closure, constant):
        assert of(load, source.format(1), tmp_path) == of(load, source.format(1), tmp_path)
        assert of(load, source.format(1), tmp_path) != of(load, source.format(2), tmp_path)


def test_a_helper_of_the_bundle_counts(load: Load, tmp_path: Path) -> None:
    """Called by name, through its module, or imported inside the function."""
    ways = [
        "from helper import clean\ndef step(rows):\n    return clean(rows)\n",
        "import helper\ndef step(rows):\n    return helper.clean(rows)\n",
        "def step(rows):\n    import helper\n    return helper.clean(rows)\n",
    ]
    for way in ways:
        found = []
        for body in ("rows", "rows.distinct()", "rows"):
            load(f"def clean(rows):\n    return {body}\n", "helper")
            sys.path.insert(0, str(tmp_path))
            found.append(of(load, way, tmp_path))
            sys.path.remove(str(tmp_path))
        assert found[0] != found[1], way
        assert found[0] == found[2], way


def test_arguments_count_in_any_order_of_keys(load: Load, tmp_path: Path) -> None:
    one = of(load, PLAIN, tmp_path, {"a": [1, {"x": 2}], "b": "s"})
    assert one == of(load, PLAIN, tmp_path, {"b": "s", "a": [1, {"x": 2}]})
    assert one != of(load, PLAIN, tmp_path, {"a": [1, {"x": 3}], "b": "s"})


def test_what_cannot_be_hashed_is_never_the_same(load: Load, tmp_path: Path) -> None:
    """Running again is dear, a wrong result is dearer."""
    thing = object()
    assert of(load, PLAIN, tmp_path, {"a": thing}) != of(load, PLAIN, tmp_path, {"a": thing})


def test_recursion_ends(load: Load, tmp_path: Path) -> None:
    source = "def step(n):\n    return other(n)\ndef other(n):\n    return step(n - 1) if n else 0\n"
    assert of(load, source, tmp_path) == of(load, source, tmp_path)


def test_location_names_file_and_lines() -> None:
    found = locate_function(test_recursion_ends)
    assert found is not None
    assert (Path(found[0]).name, found[2] - found[1]) == ("test_code.py", 2)


def test_sql_text_counts() -> None:
    assert fingerprint("select 1", {}, ()) == fingerprint("select 1", {}, ()) != fingerprint("select 2", {}, ())


def given(value: Any) -> str:
    return fingerprint("select 1", {"a": value}, ())


def test_big_values_count_as_a_whole() -> None:
    """Their ``repr`` leaves out the middle."""
    array = np.arange(5000)
    other = array.copy()
    other[2500] = -1
    assert given(array) == given(array.copy()) != given(other)
    frame, changed = pd.DataFrame({"x": array, "s": "a"}), pd.DataFrame({"x": other, "s": "a"})
    assert given(frame) == given(frame.copy()) != given(changed)
    start = "a" * 300
    assert given(re.compile(start + "b")) == given(re.compile(start + "b")) != given(re.compile(start + "c"))
    assert given(re.compile("b")) != given(re.compile("b", re.IGNORECASE))


def test_types_of_containers_and_values_count() -> None:
    values: list[Any] = [(), [], {}, set(), frozenset(), 1, True, 1.0, "1", OrderedDict(), datetime(2026, 1, 1)]  # noqa: DTZ001
    assert len({given(value) for value in values}) == len(values)
    assert all(given(value) == given(value) for value in values)


def test_objects_count_with_hidden_fields_and_methods(load: Load, tmp_path: Path) -> None:
    source = """
        from dataclasses import dataclass, field
        @dataclass
        class Rule:
            limit: int = field(repr=False)
            def apply(self, rows):
                return rows.limit(self.limit)
        class Named:
            def __init__(self, limit):
                self.limit = limit
            def __repr__(self):
                return "Named"
        RULE, NAMED = Rule(1), Named(1)
        def step(rows):
            return RULE.apply(rows), NAMED
    """
    changes = [("rows.limit(", "rows.tail("), ("", "")]
    first, *found = [of(load, source.replace(*change), tmp_path) for change in [("", ""), *changes]]
    assert [one == first for one in found] == [False, True]
    module = load(source)
    assert fingerprint("", module.Rule(1), ()) == fingerprint("", module.Rule(1), ())
    assert fingerprint("", module.Rule(1), ()) != fingerprint("", module.Rule(2), ())
    assert fingerprint("", module.Named(1), ()) != fingerprint("", module.Named(2), ())


@pytest.mark.parametrize("wrapper", ["lru_cache(maxsize=None)", "partial", "wraps(len)"])
def test_wrapped_helpers_count(load: Load, tmp_path: Path, wrapper: str) -> None:
    source = f"""
        from functools import lru_cache, partial, wraps
        @{wrapper}
        def helper(n):
            return n + 1
        def step(rows):
            return rows.limit(helper(1))
    """
    assert of(load, source, tmp_path) == of(load, source, tmp_path)
    assert of(load, source, tmp_path) != of(load, source.replace("n + 1", "n + 2"), tmp_path)


def test_two_helpers_do_not_pass_for_one(load: Load, tmp_path: Path) -> None:
    source = """
        def a(x): return x
        def b(x): return -x
        c = a
        def step(x): return a(x), b(x), c(x)
    """
    assert of(load, source, tmp_path) == of(load, source, tmp_path)
    assert of(load, source, tmp_path) != of(load, source.replace("c = a", "c = b"), tmp_path)


def test_what_holds_itself_or_cannot_be_stored_is_never_the_same() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (cycle, threading.Lock(), iter(x for x in [1])):
        assert given(value) != given(value)


IMPORTS = {
    "from pkg import h": {"pkg/__init__.py": "", "pkg/h.py": "X = {}"},
    "from pkg import other, h": {"pkg/h.py": "X = {}"},
    "import pkg.sub.h": {"pkg/__init__.py": "X = {}", "pkg/sub/h.py": ""},
    "import a1": {"a1.py": "import b1", "b1.py": "from c1 import X", "c1.py": "X = {}"},
    "from a1 import Y": {"a1.py": "from pkg.h import Y", "pkg/h.py": "from . import k", "pkg/k.py": "Y = {}"},
    "import pkg.one": {
        "pkg/one.py": "from .sub.two import Y",
        "pkg/sub/two.py": "from ..k import Y",
        "pkg/k.py": "Y = {}",
    },
    "import ring": {"ring.py": "import other_ring", "other_ring.py": "import ring\nX = {}"},
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("line", IMPORTS)
def test_modules_count_through_imports(load: Load, tmp_path: Path, line: str, inside: bool) -> None:
    """Of modules in packages and of modules of modules, imported in the step or by a module it uses."""
    found = []
    for value in ("1", "2", "1"):
        for name, source in IMPORTS[line].items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(source.format(value))
        (tmp_path / "outer.py").write_text(line)
        found.append(
            of(load, f"def step(rows):\n    {line if inside else 'import outer'}\n    return rows\n", tmp_path)
        )
    assert found[0] == found[2] != found[1]


def test_relative_imports_inside_a_step_count(load: Load, tmp_path: Path) -> None:
    found = []
    (tmp_path / "pkg").mkdir()
    for value in ("1", "2"):
        (tmp_path / "pkg" / "h.py").write_text(f"X = {value}")
        module = load("def step(rows):\n    from . import h\n    return h.X\n")
        vars(module)["__package__"] = "pkg"
        found.append(fingerprint(module.step, {}, (tmp_path,)))
    assert found[0] != found[1]


def test_a_linked_module_counts(load: Load, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "h.py").symlink_to(outside)
    found = []
    for value in ("1", "2"):
        outside.write_text(f"import h\nX = {value}")
        module = load("def step(rows):\n    import h\n    return h.X\n", "bundle/dag")
        found.append(fingerprint(module.step, {}, (tmp_path / "bundle",)))
    assert found[0] != found[1]


def test_methods_of_a_class_without_a_file_count() -> None:
    """As of a class made in a notebook."""

    def made(body: str) -> Any:
        space: dict[str, Any] = {"__name__": "nowhere"}
        exec(f"class Rule:\n    @property\n    def a(self): return {body}\n    def b(self): return {body}", space)
        return space["Rule"]()

    assert given(made("1")) == given(made("1")) != given(made("2"))
