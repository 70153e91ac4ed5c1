"""A plan as a picture: a graph for Graphviz, or the time line as SVG, for which nothing need be installed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from msgspec import Struct

from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.report.alike import Alike, collapse_groups
from airflow_dagsched.plan.report.certainty import say_bound_of, say_known
from airflow_dagsched.plan.report.words import MINUTE_S, format_count, format_duration, join_names, name_dataset

WIDTH, ROW, BAR, MARGIN, HEAD, FOOT = 1000, 44, 30, 20, 80, 24
"""Pixels: of the time line, from bar to bar, of a bar, around all, above the first bar, for the scale below."""
CHARACTER = 6.6
"""Pixels of one, about."""
TICKS = 8
"""Moments on the scale, at most."""
STEPS = 8
"""Names of steps in a box."""
NAMED = 60
"""Names of steps in what is shown of a bar on demand."""
DATASETS = 3
"""Names of spills at an edge."""
DASHES = ' stroke-dasharray="5 4"'
STARTS, WORKS, EDGE, LINE = "#c6c6c6", "#9ecae1", "#3182bd", "#888"


def draw_dot(plan: Plan) -> str:
    """The groups as boxes with their steps; solid edges: who waits for whom; dashed ones: spills.

    Groups that are alike are one box.
    """
    shown = _Shown.of(plan)
    lines = [f"digraph {_quote_text(plan.dataflow)} {{", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quote_text(one.first.id)} [label={_quote_text(_write_label(one))}];" for one in shown.alike]
    lines += [f"  {_quote_text(task)} [shape=ellipse];" for task in _list_tasks(plan)]
    lines += [f"  {_quote_text(before)} -> {_quote_text(after)};" for before, after in shown.list_waits()]
    lines += [
        f"  {_quote_text(src)} -> {_quote_text(dst)} [style=dashed, label={_quote_text(join_names(names, DATASETS))}];"
        for (src, dst), names in shown.list_spills(plan).items()
    ]
    return "\n".join([*lines, "}"]) + "\n"


def draw_svg(plan: Plan) -> str:
    """The time line: a bar for each group from its start to its end, the start of the application shaded.

    Solid lines: who waits for whom; dashed ones: spills. Bars on one row do not overlap. Groups that are alike are one
    bar, from when the first of them starts to when the last ends.
    """
    shown = _Shown.of(plan)
    rows = _assign_rows(shown.alike)
    bottom = HEAD + ROW * (max(rows.values(), default=-1) + 1)
    height = bottom + FOOT + MARGIN
    scale = (WIDTH - 2 * MARGIN) / (plan.makespan_s or 1.0)
    ends = {one.first.id: (MARGIN + one.end_s * scale, _find_middle(rows[one.first.id])) for one in shown.alike}
    starts = {one.first.id: (MARGIN + one.start_s * scale, _find_middle(rows[one.first.id])) for one in shown.alike}
    title = "; ".join(filter(None, [f"{plan.dataflow}: {format_duration(plan.makespan_s)}", say_bound_of(plan)]))
    known = say_known(plan.work) if plan.work is not None else ""
    font = 'font-family="sans-serif" font-size="12"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>',
        '  <rect width="100%" height="100%" fill="white"/>',
        f'  <text x="{MARGIN}" y="{MARGIN}" font-size="14">{escape(title, quote=False)}</text>',
        f'  <text x="{MARGIN}" y="{2 * MARGIN}">{escape(known, quote=False)}</text>',
        *_draw_legend(spills=bool(plan.spills)),
        *_draw_scale(plan.makespan_s, scale, bottom),
        *(_draw_line(ends[src], starts[dst], "") for src, dst in shown.list_waits() if src in ends),
        *(_draw_line(ends[src], starts[dst], DASHES) for src, dst in shown.list_spills(plan)),
        *(line for one in shown.alike for line in _draw_bar(one, rows[one.first.id], scale)),
    ]
    return "\n".join([*lines, "</svg>"]) + "\n"


class _Shown(Struct, frozen=True):
    """What is drawn in place of each group."""

    alike: list[Alike]
    shown: dict[str, str]
    """Id of a group -> that of the one which is drawn."""

    @classmethod
    def of(cls, plan: Plan) -> _Shown:
        """Groups that are alike, drawn as the first of them."""
        alike = collapse_groups(plan.groups)
        return cls(alike, {group.id: one.first.id for one in alike for group in one.groups})

    def list_waits(self) -> list[tuple[str, str]]:
        """Groups and ordinary tasks, and who waits for them."""
        pairs = (
            (self.shown.get(before, before), one.first.id)
            for one in self.alike
            for group in one.groups
            for before in group.after
        )
        return list(dict.fromkeys(pairs))

    def list_spills(self, plan: Plan) -> dict[tuple[str, str], list[str]]:
        """Groups that write spills, and those that read them, with the names of what they read."""
        home = {step: self.shown[group.id] for group in plan.groups for step in group.steps}
        found: dict[tuple[str, str], list[str]] = {}
        for spill in plan.spills:
            for dst in dict.fromkeys(home[dst] for dst in spill.dst):
                found.setdefault((home[spill.src], dst), []).append(name_dataset(spill))
        return found


def _draw_legend(*, spills: bool) -> Iterator[str]:
    """What the colors and lines are."""
    y = HEAD - BAR
    for at, (color, text) in enumerate(((STARTS, "the application starts"), (WORKS, "reads, computes, writes"))):
        x = MARGIN + at * 180
        yield f'  <rect x="{x}" y="{y}" width="12" height="12" fill="{color}"/>'
        yield f'  <text x="{x + 18}" y="{y + 11}">{text}</text>'
    for at, (dashes, text) in enumerate((("", "waits for"), (DASHES, "reads a spill of"))[: 2 if spills else 1]):
        x = MARGIN + 370 + at * 110
        yield _draw_line((x, y + 6), (x + 24, y + 6), dashes)
        yield f'  <text x="{x + 30}" y="{y + 11}">{text}</text>'


def _draw_scale(makespan_s: float, scale: float, bottom: float) -> Iterator[str]:
    """Round moments below the bars, with a thin line up through them."""
    each = _round_up(makespan_s / TICKS)
    for at in range(int(makespan_s / each) + 1 if each else 0):
        x = MARGIN + at * each * scale
        yield f'  <line x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
        moment = format_duration(at * each)
        yield f'  <text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{moment}</text>'


def _round_up(seconds: float) -> float:
    """To 1, 2 or 5 times a power of ten; from a minute on, to minutes of such a number."""
    if seconds > MINUTE_S:
        return MINUTE_S * _round_up(seconds / MINUTE_S)
    power = 10.0 ** math.floor(math.log10(seconds)) if seconds > 0 else 0.0  # no logarithm of an empty plan
    return next((factor * power for factor in (1, 2, 5) if seconds <= factor * power), 10 * power)


def _assign_rows(alike: Sequence[Alike]) -> dict[str, int]:
    """Each, by the id of the group that is shown, on the first row that is free by its start."""
    rows: dict[str, int] = {}
    free: list[float] = []
    for one in sorted(alike, key=lambda one: (one.start_s, one.first.id)):
        at = next((row for row, end in enumerate(free) if end <= one.start_s), len(free))
        free[at : at + 1] = [one.end_s]  # replaces a row, or appends one
        rows[one.first.id] = at
    return rows


def _find_middle(row: int) -> float:
    return HEAD + row * ROW + BAR / 2


def _draw_bar(alike: Alike, row: int, scale: float) -> Iterator[str]:
    # Numbers with one digit: plans are compared as text, pictures too.
    x, y = MARGIN + alike.start_s * scale, HEAD + row * ROW
    group = alike.first
    width, started = (alike.end_s - alike.start_s) * scale, group.time.start * scale
    span = f"{format_duration(alike.start_s)} to {format_duration(alike.end_s)}"
    about = f"{alike.name}: {join_names(group.steps, NAMED)}; {span}; {group.reason}"
    each = " each" if len(alike.groups) > 1 else ""
    # Cut, not shrunk: SVG does not clip text, it would run over the next bar.
    label = f"{alike.name}: {format_count(len(group.steps), 'step')}{each}"[: max(0, int((width - 8) / CHARACTER))]
    yield f"  <g><title>{escape(about, quote=False)}</title>"
    yield f'    <rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{WORKS}" stroke="{EDGE}"/>'
    yield f'    <rect x="{x:.1f}" y="{y}" width="{min(width, started):.1f}" height="{BAR}" fill="{STARTS}"/>'
    yield f'    <text x="{x + 4:.1f}" y="{y + BAR / 2 + 4}">{escape(label, quote=False)}</text></g>'


def _draw_line(start: tuple[float, float], end: tuple[float, float], dashes: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'  <line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" stroke="{LINE}"{dashes}/>'


def _list_tasks(plan: Plan) -> list[str]:
    groups = {group.id for group in plan.groups}
    return list(dict.fromkeys(name for group in plan.groups for name in group.after if name not in groups))


def _write_label(alike: Alike) -> str:
    span = f"{format_duration(alike.start_s)} to {format_duration(alike.end_s)}"
    return f"{alike.name}\n{join_names(alike.first.steps, STEPS)}\n{span}"


def _quote_text(text: str) -> str:
    # The backslash first: it would double those that the others put in.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
