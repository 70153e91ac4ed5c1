"""A plan as a picture: a graph for Graphviz, or the time line as SVG, for which nothing need be installed."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from airflow_dagsched.plan.values import Group, Plan, Spill

WIDTH, ROW, BAR, MARGIN, HEAD = 1000, 44, 30, 20, 36
"""Pixels: of the time line, from bar to bar, of a bar, around all, above the first bar."""
CHARACTER = 6.6
"""Pixels of one, about."""


def as_dot(plan: Plan) -> str:
    """The groups as boxes with their steps; solid edges: who waits for whom; dashed ones: spills."""
    home = {step: group.id for group in plan.groups for step in group.steps}
    lines = [f"digraph {_quoted(plan.dataflow)} {{", "  node [shape=box];"]
    lines += [f"  {_quoted(g.id)} [label={_quoted(_label(g))}];" for g in plan.groups]
    lines += [f"  {_quoted(task)} [shape=ellipse];" for task in _tasks(plan)]
    lines += [f"  {_quoted(before)} -> {_quoted(group.id)};" for group in plan.groups for before in group.after]
    lines += [
        f"  {_quoted(home[spill.src])} -> {_quoted(target)} [style=dashed, label={_quoted(_spilled(spill))}];"
        for spill in plan.spills
        for target in dict.fromkeys(home[dst] for dst in spill.dst)
    ]
    return "\n".join([*lines, "}"]) + "\n"


def as_svg(plan: Plan) -> str:
    """The time line: a bar for each group from its start to its end, the start of the application shaded.

    Solid lines: who waits for whom; dashed ones: spills. Bars on one row do not overlap.
    """
    rows = _rows(plan)
    height = HEAD + ROW * (max(rows.values(), default=-1) + 1) + MARGIN
    scale = (WIDTH - 2 * MARGIN) / (plan.makespan_s or 1.0)
    ends = {group.id: (MARGIN + group.end_s * scale, _middle(rows[group.id])) for group in plan.groups}
    starts = {group.id: (MARGIN + group.start_s * scale, _middle(rows[group.id])) for group in plan.groups}
    title = f"{plan.dataflow}: {plan.makespan_s:.1f} s, at least {plan.lower_bound_s:.1f} s"
    font = 'font-family="sans-serif" font-size="12"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>',
        f'  <text x="{MARGIN}" y="{MARGIN}" font-size="14">{escape(title)}</text>',
        *(_line(ends[name], starts[group.id], "") for group in plan.groups for name in group.after if name in ends),
        *(_line(ends[src], starts[dst], ' stroke-dasharray="5 4"') for src, dst in _spilled_between(plan)),
        *(line for group in plan.groups for line in _bar(group, rows[group.id], scale)),
    ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _rows(plan: Plan) -> dict[str, int]:
    """Each group on the first row that is free by its start."""
    rows: dict[str, int] = {}
    free: list[float] = []
    for group in sorted(plan.groups, key=lambda group: (group.start_s, group.id)):
        at = next((row for row, end in enumerate(free) if end <= group.start_s), len(free))
        free[at : at + 1] = [group.end_s]
        rows[group.id] = at
    return rows


def _middle(row: int) -> float:
    return HEAD + row * ROW + BAR / 2


def _bar(group: Group, row: int, scale: float) -> Iterator[str]:
    x, y = MARGIN + group.start_s * scale, HEAD + row * ROW
    width, started = (group.end_s - group.start_s) * scale, group.time.start * scale
    about = f"{group.id}: {', '.join(group.steps)}; {group.start_s:.1f} s to {group.end_s:.1f} s; {group.reason}"
    label = group.id[: max(0, int((width - 8) / CHARACTER))]
    yield f"  <g><title>{escape(about)}</title>"
    yield f'    <rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="#9ecae1" stroke="#3182bd"/>'
    yield f'    <rect x="{x:.1f}" y="{y}" width="{min(width, started):.1f}" height="{BAR}" fill="#c6c6c6"/>'
    yield f'    <text x="{x + 4:.1f}" y="{y + BAR / 2 + 4}">{escape(label)}</text></g>'


def _line(start: tuple[float, float], end: tuple[float, float], dashes: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'  <line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" stroke="#888"{dashes}/>'


def _spilled_between(plan: Plan) -> list[tuple[str, str]]:
    """Groups that write spills, and those that read them."""
    home = {step: group.id for group in plan.groups for step in group.steps}
    return list(dict.fromkeys((home[spill.src], home[dst]) for spill in plan.spills for dst in spill.dst))


def _tasks(plan: Plan) -> list[str]:
    groups = {group.id for group in plan.groups}
    return list(dict.fromkeys(name for group in plan.groups for name in group.after if name not in groups))


def _label(group: Group) -> str:
    return f"{group.id}\n{', '.join(group.steps)}\n{group.start_s:.1f} s to {group.end_s:.1f} s"


def _spilled(spill: Spill) -> str:
    return f"{spill.src}.{spill.output}" if spill.output else spill.src


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
