"""What is to be scheduled, and the form in which the schemes read it.

    a(3) ──> c(2)       an activity lasts so many time units, holds so much of each renewable
    b(1) ────^          resource from its start to its end, and starts once all above it have ended

Words, of the field: *project*, *activity*, *head* (longest path to the start of an activity), *tail* (longest
path from its end), *activity list* (a sequence in which an activity comes after all above it), *schedule*.
Times are whole numbers, so that sums are exact: seconds are scaled to microseconds before they come here.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.order import reverse_edges, sort_topologically

WHERE = "project"


class Project(Struct, frozen=True):
    """``n`` activities on ``k`` renewable resources, all by position."""

    durations: tuple[int, ...]
    """Time units, zero or more; length n."""
    demands: tuple[tuple[int, ...], ...]
    """Units of each resource that an activity holds; n x k."""
    successors: tuple[tuple[int, ...], ...]
    """Activities that wait for the end of this one; length n, no cycles."""
    capacities: tuple[int, ...]
    """Units there are of each resource; length k."""


class Network(Struct, frozen=True):
    """A valid project with its activities in topological order and its demands packed into one number each.

    Each resource has its own bits in a packed number and one guard bit above them: ``free - demand`` keeps
    all guard bits exactly if no resource runs short, so one subtraction compares all resources at once.
    """

    activities: Sequence[int]
    """Position here -> activity of the project."""
    order: Sequence[int]
    """Positions so that edges point forward."""
    durations: Sequence[int]
    demands: Sequence[int]
    """Packed; zero for an activity of no length, which holds nothing."""
    above: Sequence[Sequence[int]]
    below: Sequence[Sequence[int]]
    free: int
    """All of every resource, guard bits set."""
    guard: int
    amounts: Sequence[Sequence[int]]
    """The demands, not packed."""
    capacities: Sequence[int]

    def __len__(self) -> int:
        return len(self.durations)


def build_network(project: Project) -> Network:
    """The network of ``project``.

    Raises ``InvalidInput`` where lengths, signs or positions are wrong or the order has a cycle, ``DoesNotFit``
    where an activity demands more of a resource than there is.
    """
    _refuse_misshaped(project)
    order = sort_topologically(project.successors)
    if len(order) < len(project.durations):
        raise InvalidInput(WHERE, "successors", "activities must not wait for each other in a circle")
    place = {activity: at for at, activity in enumerate(order)}
    below = [sorted({place[after] for after in project.successors[activity]}) for activity in order]
    shifts, guard = _assign_bits(project.capacities)
    return Network(
        activities=order,
        order=range(len(order)),
        durations=[project.durations[activity] for activity in order],
        # Of no length, it would hold its demand for no time: zero keeps it out of every heap and profile.
        demands=[
            _pack_amounts(project.demands[activity], shifts) if project.durations[activity] else 0 for activity in order
        ],
        above=reverse_edges(below),
        below=below,
        free=_pack_amounts(project.capacities, shifts) | guard,
        guard=guard,
        amounts=[project.demands[activity] for activity in order],
        capacities=project.capacities,
    )


def mirror_network(net: Network) -> Network:
    """The same network read from its end: its schedules are those of ``net`` with time running backward."""
    # Positions stay: what is known of an activity is looked up by the same number on both sides.
    return replace(net, order=net.order[::-1], above=net.below, below=net.above)


def order_by_activity(net: Network, values: Sequence[int]) -> tuple[int, ...]:
    """``values`` by position in the network, as values by activity of the project."""
    found = [0] * len(net)
    for at, activity in enumerate(net.activities):
        found[activity] = values[at]
    return tuple(found)


def _refuse_misshaped(project: Project) -> None:
    count, kinds = len(project.durations), len(project.capacities)
    if len(project.demands) != count or len(project.successors) != count:
        raise InvalidInput(WHERE, "", f"durations, demands and successors must be of one length, {count}")
    for at, (duration, demand, nexts) in enumerate(
        zip(project.durations, project.demands, project.successors, strict=True)
    ):
        if duration < 0:
            raise InvalidInput(WHERE, f"durations[{at}]", f"must not be negative: {duration}")
        if len(demand) != kinds or min(demand, default=0) < 0:
            raise InvalidInput(WHERE, f"demands[{at}]", f"must be {kinds} amounts, none negative: {demand}")
        if nexts and not 0 <= min(nexts) <= max(nexts) < count:
            raise InvalidInput(WHERE, f"successors[{at}]", f"must be positions below {count}: {nexts}")
        _refuse_too_large(at, demand, project.capacities)


def _refuse_too_large(at: int, demand: Sequence[int], capacities: Sequence[int]) -> None:
    for kind, (needed, available) in enumerate(zip(demand, capacities, strict=True)):
        if needed > available:
            raise DoesNotFit(f"activity {at}", f"resource {kind}", needed, available)


def _assign_bits(capacities: Sequence[int]) -> tuple[list[int], int]:
    """The lowest bit of each resource, and all guard bits."""
    shifts, guard, at = [], 0, 0
    for capacity in capacities:
        shifts.append(at)
        at += capacity.bit_length() + 1  # one more for the guard
        guard |= 1 << (at - 1)
    return shifts, guard


def _pack_amounts(amounts: Sequence[int], shifts: Sequence[int]) -> int:
    return sum(amount << shift for amount, shift in zip(amounts, shifts, strict=True))
