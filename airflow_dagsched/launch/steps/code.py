"""Fingerprint of what a step's code is, and what it uses: equal code, arguments and helpers give the equal digest.

Byte code and constants are hashed, not file names, line numbers or comments: moving a function or
reformatting it keeps its results. What cannot be hashed by value makes the digest unique, so that a result
is run again rather than wrongly reused.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from airflow_dagsched.launch.steps.imports import (
    Import,
    find_file,
    list_candidates,
    list_code_imports,
    list_file_imports,
    parse_source,
    resolve_name,
)


@dataclass(frozen=True, slots=True)
class Uses:
    """What is in the code, the helpers it reaches and the arguments. Of a module of the bundle all of the file."""

    names: set[str] = field(default_factory=set)
    """Of attributes, globals and imports."""
    bare: set[str] = field(default_factory=set)
    """Those that are looked up as they stand: globals and built-in functions."""
    modules: set[str] = field(default_factory=set)
    """Modules outside of the bundle, and those of classes and functions met; "" for what cannot be looked into."""
    texts: set[str] = field(default_factory=set)
    """But for docstrings, of functions."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a step does."""

    fingerprint: str
    """Hex digest."""
    uses: Uses


def read_code(function: Any, arguments: Any, roots: tuple[Path, ...]) -> Code:
    """Look into ``function`` (or SQL text) called with ``arguments``.

    :param roots: folders of the DAG bundle: modules in them count by content, others by name.
    """
    digest, uses = hashlib.sha256(), Uses()
    try:
        for part in _Walk(roots, uses).visit_value([function, arguments]):
            digest.update(part.encode(errors="surrogatepass"))
            digest.update(b"\0")  # parts end somewhere: ('a', 'bc') is not ('ab', 'c')
    except RecursionError:  # a list that holds itself
        digest.update(uuid.uuid4().bytes)
        uses.modules.add("")
    return Code(digest.hexdigest(), uses)


def read_parts(function: Any, arguments: Mapping[str, Any], roots: tuple[Path, ...]) -> dict[str, str]:
    """As ``read_code``, but each part apart: what it is called (``global 'RATE'``) -> hex digest.

    Two looks at what cannot be hashed by value differ in the parts that hold it.
    """
    walk = _Walk(roots, Uses())
    digests: defaultdict[str, Any] = defaultdict(hashlib.sha256)
    try:
        for part in walk.visit_call(function, arguments):
            digests[walk.name_place()].update(part.encode(errors="surrogatepass") + b"\0")
    except RecursionError:  # a list that holds itself
        digests[walk.name_place()].update(uuid.uuid4().bytes)
    return {name: digest.hexdigest() for name, digest in digests.items()}


_SCALARS = frozenset(
    (type(None), type(...), bool, int, float, complex, str, bytes, bytearray, range, date, timedelta, Decimal)
)
"""Types whose ``repr`` is the whole value; exactly these, a subclass may have a ``repr`` of its own."""


_LOOKUPS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


class _Walk:
    """Visits everything a function can see; each function and module once."""

    def __init__(self, roots: tuple[Path, ...], uses: Uses) -> None:
        self.roots = tuple(root.resolve() for root in roots)
        self.uses = uses
        self.seen: set[str] = set()
        self.visited: dict[int, tuple[int, Any]] = {}  # holds the values: an id is free once its value is gone
        self.path: list[str] = []
        """What is being visited, by the names that lead to it."""

    def name_place(self) -> str:
        """What is being visited, as its author knows it."""
        return " of ".join(reversed(self.path)) or "code"

    def visit_call(self, function: Any, arguments: Mapping[str, Any]) -> Iterator[str]:
        yield from self.visit_value(function)
        for name, value in sorted(arguments.items()):
            yield from self.visit_named(f"argument {name!r}", value)

    def visit_named(self, name: str, value: Any) -> Iterator[str]:
        self.path.append(name)
        yield from self.visit_value(value)
        self.path.pop()

    def visit_value(self, value: Any) -> Iterator[str]:
        # To the DAG file the name of a step is its decorator's object.
        value = getattr(value, "function", value) if hasattr(value, "_airflow_is_task_decorator") else value
        if type(value) in _SCALARS:
            self.uses.texts.update(_list_texts(value))
            yield f"{type(value).__name__}:{value!r}"
        elif type(value) in (dict, list, tuple, set, frozenset):
            yield from self.visit_container(value)
        elif isinstance(value, FunctionType):
            yield from self.visit_function(value)
        elif isinstance(value, CodeType):
            yield from self.visit_code(value)
        elif isinstance(value, ModuleType):
            yield from self.visit_module(value)
        elif isinstance(value, type):
            yield from self.visit_type(value)
        else:
            yield from self.visit_object(value)

    def visit_container(self, value: Any) -> Iterator[str]:
        yield f"{type(value).__name__}[{len(value)}"
        # Sets, and dicts of equal items, come in any order.
        for item in value if isinstance(value, (list, tuple)) else sorted(value, key=repr):
            yield from self.visit_value(item)
            if isinstance(value, dict):
                yield from self.visit_value(value[item])

    def visit_object(self, value: Any) -> Iterator[str]:
        """By what pickle would store, part by part: its bytes vary with the order of sets and shared strings, and
        leave out the code of classes and functions.
        """
        if (again := self.find_visited(value)) is not None:
            yield again
            return
        yield "object"
        yield from self.visit_value(type(value))
        if isinstance(wrapped := _get_wrapped(value), FunctionType):
            yield from self.visit_value(wrapped)
        reduced = _reduce_value(value)
        if isinstance(reduced, str):
            yield self.note_name(getattr(value, "__module__", None) or "", reduced)
        else:
            yield from self.visit_value(reduced)

    def find_visited(self, value: Any) -> str | None:
        """Which of the visited ``value`` is, None where it is new: cycles end, and two helpers do not pass for one."""
        known = id(value) in self.visited
        place, _ = self.visited.setdefault(id(value), (len(self.visited), value))
        return f"again {place}" if known else None

    def visit_function(self, function: FunctionType) -> Iterator[str]:
        if (again := self.find_visited(function)) is not None:
            yield again
            return
        if isinstance(wrapped := _get_wrapped(function), FunctionType):
            yield from self.visit_function(wrapped)
        if not self._is_ours(function):
            yield self.note_name(function.__module__, function.__qualname__)
            return
        yield from self.visit_code(function.__code__)
        yield from self.visit_value([function.__defaults__, function.__kwdefaults__])
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield from self.visit_cell(variable, cell)
        for name in sorted(_collect_names(function.__code__)):
            if name in function.__globals__:
                yield name
                yield from self.visit_named(f"global {name!r}", function.__globals__[name])
        for name in self.list_modules(
            list_code_imports(function.__code__), function.__globals__.get("__package__") or ""
        ):
            yield from self.visit_imported(name)

    def visit_cell(self, variable: str, cell: Any) -> Iterator[str]:
        try:
            content = cell.cell_contents
        except ValueError:
            yield "empty"
        else:
            yield from self.visit_named(f"variable {variable!r}", content)

    def visit_code(self, code: CodeType) -> Iterator[str]:
        self.uses.names.update(code.co_names)
        for step in dis.get_instructions(code):
            if step.opname in _LOOKUPS:
                self.uses.bare.add(step.argval)
            elif step.opcode in dis.hasconst:  # a docstring is a constant that nothing loads
                self.uses.texts.update(_list_texts(step.argval))
        # As compiled: what the interpreter rewrites as it runs is not in it.
        yield code.co_code.hex()
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount))
        for const in code.co_consts:
            yield from self.visit_code(const) if isinstance(const, CodeType) else self.visit_constant(const)

    def visit_constant(self, value: Any) -> Iterator[str]:
        # Not noted as a text: docstrings are constants, too. Those that are loaded were noted above.
        if isinstance(value, str):
            yield f"str:{value!r}"
        else:
            yield from self.visit_value(value)

    def note_name(self, module: str, name: str) -> str:
        """What is known by its name alone."""
        self.uses.modules.add(module)
        parts = name.split(".")
        self.uses.names.update(parts)
        if module == "builtins":
            self.uses.bare.add(parts[0])
        return f"{module}.{name}"

    def visit_type(self, cls: type) -> Iterator[str]:
        if (again := self.find_visited(cls)) is not None:
            yield again
            return
        module = sys.modules.get(cls.__module__)
        yield cls.__qualname__ if self._is_in_roots(module) else self.note_name(cls.__module__, cls.__qualname__)
        if module is not None and self._is_in_roots(module):
            yield from self.visit_module(module)
        # No file of it: of a class made in a notebook, or whose module is gone, the methods themselves count.
        elif module is None or module.__name__ == "__main__":
            for name, member in sorted(vars(cls).items()):
                if isinstance(member, (FunctionType, staticmethod, classmethod, property)):
                    yield name
                    yield from self.visit_value(member)

    def list_modules(self, imports: Iterable[Import], package: str) -> list[str]:
        """Modules that code of ``package`` imports, or may."""
        found: set[str] = set()
        for each in imports:
            self.uses.names.update(each.names)
            module = resolve_name(package, each)
            if find_file(module, self.roots) is None:
                self.uses.modules.add(module)
            found |= list_candidates(package, each)
        return sorted(found)

    def visit_imported(self, name: str) -> Iterator[str]:
        """The module ``name`` by its file, found the same whether or not this process has imported it."""
        if (file := find_file(name, self.roots)) is not None:
            yield from self.visit_file(file)
        elif (module := sys.modules.get(name)) is not None:
            yield from self.visit_module(module)

    def visit_file(self, file: Path) -> Iterator[str]:
        """A module of the bundle and, through its imports, those it uses."""
        file = file.resolve()
        if str(file) in self.seen:
            return
        self.seen.add(str(file))
        content = file.read_bytes()
        yield hashlib.sha256(content).hexdigest()
        tree = parse_source(content)
        self.note_uses(tree)
        for name in self.list_modules(list_file_imports(tree), self.find_package(file)):
            if (found := find_file(name, self.roots)) is not None:
                yield from self.visit_file(found)

    def note_uses(self, tree: ast.Module | None) -> None:
        """Note what a file uses."""
        if tree is None:
            self.uses.modules.add("")
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self.uses.bare.add(node.id)
                self.uses.names.add(node.id)
            elif isinstance(node, ast.Attribute):
                self.uses.names.add(node.attr)
            elif isinstance(node, ast.Constant):
                self.uses.texts.update(_list_texts(node.value))

    def find_package(self, file: Path) -> str:
        """Dotted name of the package ``file`` lies in, for its relative imports."""
        inside = (file.parent.relative_to(root).parts for root in self.roots if file.is_relative_to(root))
        return ".".join(next(inside, ()))  # a link may lead out of the roots

    def visit_module(self, module: ModuleType) -> Iterator[str]:
        if (again := self.find_visited(module)) is not None:
            yield again
            return
        if not self._is_in_roots(module):
            self.uses.modules.add(module.__name__)
            yield f"module {module.__name__} {getattr(module, '__version__', '')}"
            return
        yield from self.visit_file(Path(str(module.__file__)))
        for name in sorted(vars(module)):
            inner = vars(module)[name]
            home = inner if isinstance(inner, ModuleType) else sys.modules.get(getattr(inner, "__module__", None) or "")
            if home is not None and self._is_in_roots(home):
                yield from self.visit_module(home)

    def _is_ours(self, function: FunctionType) -> bool:
        module = sys.modules.get(function.__module__)
        return (
            module is None or module.__name__ == "__main__" or self._is_in_roots(module) or self._has_our_file(function)
        )

    def _has_our_file(self, function: FunctionType) -> bool:
        return self._is_under(function.__code__.co_filename)

    def _is_in_roots(self, module: ModuleType | None) -> bool:
        return module is not None and self._is_under(getattr(module, "__file__", None))

    def _is_under(self, file: str | None) -> bool:
        if not file or "site-packages" in file:  # a virtual environment may lie inside the bundle
            return False
        path = Path(file).resolve()
        return any(path.is_relative_to(root) for root in self.roots)


def _get_wrapped(value: Any) -> Any:
    """What ``functools.wraps`` or ``lru_cache`` wrapped."""
    own = getattr(value, "__dict__", None)
    return own.get("__wrapped__") if type(own) is dict else None


def _reduce_value(value: Any) -> Any:
    """What pickle stores of ``value``: a global name or parts; a new id where that fails."""
    from cloudpickle import Pickler

    # It is nothing but its identity, as a sentinel, and that is another in the next process.
    if type(value) is object:
        return [uuid.uuid4().hex]
    try:
        reducer = Pickler.dispatch_table.get(type(value))
        reduced = reducer(value) if reducer else value.__reduce_ex__(4)
        if isinstance(reduced, str):
            return reduced
        # the fourth and fifth are iterators over the items of a list and of a dict
        return [*reduced[:3], *(None if items is None else list(items) for items in reduced[3:5])]
    except Exception:  # noqa: BLE001 - the value's own code: whatever it raises, its value is not known
        return [uuid.uuid4().hex]


def _collect_names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*(_collect_names(const) for const in inner))


def _list_texts(value: Any) -> Iterator[str]:
    """Texts in a constant."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (bytes, bytearray)):
        yield value.decode(errors="replace")
    elif isinstance(value, (tuple, frozenset)):
        for item in value:
            yield from _list_texts(item)


def locate_function(function: Any) -> tuple[str, int, int] | None:
    """Source file, first and last line of ``function``; None where Python does not know."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    return str(inspect.getsourcefile(function)), first, first + len(lines) - 1
