"""Nodes and pods as the Kubernetes API writes them: the fields that tell who may get an executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal

from airflow_dagsched.launch.managers.answer import Answer
from airflow_dagsched.launch.managers.kubernetes.quantity import parse_quantity

Amounts = dict[str, str]
"""Resource -> quantity."""


class Toleration(Answer, frozen=True):
    """A taint that executors put up with. Empty key: any; empty effect: any."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        """Kubernetes' own rule ("Taints and Tolerations")."""
        return (
            self.effect in ("", taint.effect)
            and (self.key == taint.key or (not self.key and self.operator == "Exists"))
            and (self.operator == "Exists" or self.value == taint.value)
        )


class Taint(Answer, frozen=True):
    """Keeps pods off a node."""

    key: str
    effect: str
    value: str = ""


class Metadata(Answer, frozen=True):
    """Name and labels of a node."""

    name: str = ""
    labels: dict[str, str] | None = None


class NodeSpec(Answer, frozen=True):
    """What is asked of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class Condition(Answer, frozen=True):
    """One of the states of a node."""

    type: str
    status: str


class NodeStatus(Answer, frozen=True):
    """How a node is."""

    allocatable: Amounts = {}
    conditions: tuple[Condition, ...] | None = None


class Node(Answer, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def may_run_executors(self, tolerations: Sequence[Toleration]) -> bool:
        """Whether it is ready and nothing keeps a new executor off."""
        ready = any(state.type == "Ready" and state.status == "True" for state in self.status.conditions or ())
        # A taint that only prefers others to come keeps nobody off.
        hard = [taint for taint in self.spec.taints or () if taint.effect != "PreferNoSchedule"]
        tolerated = all(any(one.covers(taint) for one in tolerations) for taint in hard)
        return ready and tolerated and not self.spec.unschedulable


class Needs(Answer, frozen=True):
    """What a container requests."""

    requests: Amounts | None = None


class PodContainer(Answer, frozen=True):
    """A container of a pod."""

    resources: Needs = Needs()
    restart_policy: str | None = None


class PodSpec(Answer, frozen=True):
    """Where a pod is, and what it requests."""

    node_name: str | None = None
    containers: tuple[PodContainer, ...] = ()
    init_containers: tuple[PodContainer, ...] | None = None
    overhead: Amounts | None = None

    def sum_requests(self, resource: str) -> Decimal:
        """The larger of what its containers need together, and what any init container needs before them."""
        # An init container that restarts always is a sidecar (Kubernetes 1.28): it runs beside the others. Those that
        # end do so before the others start, and one after another: only the largest of them counts.
        sidecars = [one for one in self.init_containers or () if one.restart_policy == "Always"]
        before = [one for one in self.init_containers or () if one.restart_policy != "Always"]
        together = read_amount(self.overhead, resource) + sum(
            _read_request(one, resource) for one in (*self.containers, *sidecars)
        )
        return max([together, *(_read_request(one, resource) for one in before)])


class PodStatus(Answer, frozen=True):
    """How far a pod is."""

    phase: str = ""


class Pod(Answer, frozen=True):
    """A pod."""

    spec: PodSpec
    status: PodStatus = PodStatus()


class NodeList(Answer, frozen=True):
    """Of ``/api/v1/nodes``."""

    kind: Literal["NodeList"]
    items: tuple[Node, ...]


class PodList(Answer, frozen=True):
    """Of ``/api/v1/pods``."""

    kind: Literal["PodList"]
    items: tuple[Pod, ...]


def read_amount(amounts: Mapping[str, str] | None, resource: str) -> Decimal:
    """How much there is of ``resource``; raises ``ValueError`` for what is no quantity."""
    return parse_quantity((amounts or {}).get(resource, "0"))


def _read_request(container: PodContainer, resource: str) -> Decimal:
    return read_amount(container.resources.requests, resource)
