"""A project in PSPLIB's format, and workflows as files."""

from __future__ import annotations

from airflow_dagsched.plan.rcpsp.project import Project

SMALL = Project(
    durations=(0, 4, 2, 0),
    demands=((0, 0), (2, 0), (0, 3), (0, 0)),
    successors=((1, 2), (3,), (3,), ()),
    capacities=(2, 3),
)
"""source ──> 4 s, two of the first resource ──> sink, and beside it 2 s, three of the second."""

RULER = "*" * 72


def sm_text(project: Project) -> str:
    """The file as PSPLIB would publish it."""
    kinds = [f"R {kind}" for kind in range(1, len(project.capacities) + 1)]
    lines = ["file with basedata            : SMALL.BAS", RULER, "PRECEDENCE RELATIONS:"]
    lines += ["jobnr.    #modes  #successors   successors"]
    for at, nexts in enumerate(project.successors, 1):
        jobs = "".join(f"{after + 1:4}" for after in nexts).strip()
        lines.append(f"{at:>4}{1:>9}{len(nexts):>11}{'           ' if jobs else ''}{jobs}")
    lines += [RULER, "REQUESTS/DURATIONS:", f"jobnr. mode duration  {'  '.join(kinds)}", "-" * 72]
    for at, (duration, demand) in enumerate(zip(project.durations, project.demands, strict=True), 1):
        amounts = f"{demand[0]:>8}" + "".join(f"{amount:>5}" for amount in demand[1:])
        lines.append(f"{at:>3}{1:>7}{duration:>6}{amounts}")
    capacities = "".join(f"{capacity:>5}" for capacity in project.capacities)
    lines += [RULER, "RESOURCEAVAILABILITIES:", f"  {'  '.join(kinds)}", capacities, RULER]
    return "\n".join(lines) + "\n"
