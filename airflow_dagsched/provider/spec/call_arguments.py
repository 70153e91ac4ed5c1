"""How a step is called: its arguments with placeholders for rows, and the checks on them.

A step's arguments may hold return values of other steps (a channel each), of ordinary tasks (values, known
when the launch task runs), templates and plain values, nested in lists, tuples and dicts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from airflow.sdk.definitions.xcom_arg import PlainXComArg, XComArg

from airflow_dagsched.launch.protocol.calls import ContextValue

CONTEXT_NAMES = frozenset(
    {"spark", "interval", "ds", "ds_nodash", "ts", "ts_nodash", "logical_date", "run_id", "params", "partition_key",
     "partition_date", "dag_id"}
)  # fmt: skip
"""What a step function may ask for by name. All but the session and the interval are JSON values."""
DATED_NAMES = CONTEXT_NAMES - {"spark", "params", "dag_id"}
"""Those that differ from run to run by themselves. The others count by their values."""
FORBIDDEN_NAMES = frozenset({"ti", "task_instance", "task", "dag", "dag_run", "context", "conn", "var", "macros"})
"""Airflow's names a step cannot have: they live in an Airflow worker, the step on the cluster."""
FORBIDDEN_IN_TEMPLATES = frozenset({"ti", "task_instance", "task", "task_instance_key_str"})
"""In a template these would be the launch task's, not the step's."""


def iterate_leaves(value: Any) -> Iterator[Any]:
    """Every leaf of ``value``, looking into lists, tuples, sets and dicts."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from iterate_leaves(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from iterate_leaves(item)
    else:
        yield value


def transform_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """``value`` with ``leaf`` applied to every leaf."""
    if isinstance(value, Mapping):
        return {key: transform_leaves(item, leaf) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        # A named tuple takes its fields one by one; its _make takes them together, as other sequences do.
        make = getattr(value, "_make", type(value))
        return make(transform_leaves(item, leaf) for item in value)
    return leaf(value)


def find_source(value: Any) -> tuple[Any, str] | None:
    """(operator, output name) where ``value`` is the plain return value of an operator; None otherwise."""
    if not isinstance(value, PlainXComArg):
        return None
    # Airflow's name for what a task returns; an output without a name is ours.
    return value.operator, "" if value.key == "return_value" else value.key


def list_operators(value: Any) -> list[Any]:
    """Operators whose return values ``value`` refers to, in any form."""
    return [operator for operator, _ in XComArg.iter_xcom_references(value)]


def check_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Signature of ``function``; raises ``TypeError`` where it asks for what only exists in an Airflow worker."""
    signature = inspect.signature(function)
    asked = sorted(FORBIDDEN_NAMES & signature.parameters.keys())
    if asked:
        raise TypeError(
            f"asks for {', '.join(asked)}, which does not exist on the cluster; a step may ask for "
            f"{', '.join(sorted(CONTEXT_NAMES))}"
        )
    # Called it would return an object that nobody awaits, and the step would look done.
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("is async, but nothing on the cluster awaits it: write a plain function")
    nameless = next((p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY), None)
    if nameless is not None:
        raise TypeError(f"takes {nameless!r} by position only, but arguments are passed by name: leave out the '/'")
    starred = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    if starred is not None:
        raise TypeError(f"takes *{starred}, but arguments are passed by name: take {starred!r} and pass a list")
    return signature


def bind_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a call, with :class:`ContextValue` for names the author left to us.

    A context parameter with a default is left out where the run has no such value; see :func:`list_optional_names`.
    Raises ``TypeError`` for a call that does not fit the function.
    """
    signature = check_signature(function)
    names = list(signature.parameters)  # in order, for positional arguments
    filled: dict[str, Any] = {
        name: ContextValue(name) for name in names if name in CONTEXT_NAMES and name not in kwargs
    }
    given = _bind_positional(names, args, filled)
    overlap = given.keys() & kwargs.keys()
    if overlap:
        raise TypeError(f"got multiple values for argument {min(overlap)!r}")
    call = {**filled, **given, **kwargs}
    unknown = call.keys() - signature.parameters.keys()
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        raise TypeError(f"takes no argument {min(unknown)!r}")
    missing = [
        p.name for p in signature.parameters.values()
        if p.default is p.empty and p.name not in call and p.kind is not p.VAR_KEYWORD
    ]  # fmt: skip
    if missing:
        raise TypeError(f"missing argument {missing[0]!r}")
    return call


def split_call(
    function: Callable[..., Any], kwargs: Mapping[str, Any], words: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of ``kwargs`` that are ``words`` of ours, then those for ``function``: its own parameters come first."""
    if kwargs.keys().isdisjoint(words):
        return {}, dict(kwargs)
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return {}, dict(kwargs)
    ours = {word for word in words if word in kwargs and word not in parameters}
    return {word: kwargs[word] for word in sorted(ours)}, {n: v for n, v in kwargs.items() if n not in ours}


def _bind_positional(names: list[str], args: tuple[Any, ...], filled: Mapping[str, Any]) -> dict[str, Any]:
    """Positional arguments by name: they fill, in order, the parameters that are no context names."""
    free = [name for name in names if name not in filled]
    if len(args) > len(free):
        raise TypeError(f"takes {len(free)} positional argument{'s' * (len(free) != 1)} but {len(args)} were given")
    return dict(zip(free, args, strict=False))


def list_optional_names(function: Callable[..., Any]) -> frozenset[str]:
    """Context names that ``function`` has a default for."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.name in CONTEXT_NAMES and p.default is not p.empty)


def find_forbidden_names(value: Any) -> list[str]:
    """Names in the templates of ``value`` that would mean the launch task instead of the step.

    Raises ``ValueError`` for a template that cannot be parsed.
    """
    texts = [leaf for leaf in iterate_leaves(value) if isinstance(leaf, str) and ("{{" in leaf or "{%" in leaf)]
    if not texts:
        return []
    # Late: few steps have a template, and every parse would pay.
    from jinja2 import Environment, TemplateError, meta

    # Parsed, never rendered here: which names a template asks for is in its tree.
    parse = Environment(autoescape=False).parse
    found: set[str] = set()
    for text in texts:
        try:
            found |= meta.find_undeclared_variables(parse(text))
        except TemplateError as error:
            raise ValueError(f"template {text!r} cannot be parsed: {error}") from None
    return sorted(FORBIDDEN_IN_TEMPLATES & found)
