"""Whether what spark-submit is given is what the plan says: the checker of a launch, as ``plan.checking`` is of a plan.

    plan of the group  ──┐
    settings submitted ──┴──> violations: cores, memory, how many, where      no code is shared with ``managers``

What the author names is the author's word, and passes; so does more memory after a failure, up to what a worker has. A
violation names settings and what is planned, never a value: that may be secret.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.plan.checking.facts.plan_facts import Violation
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.settings import Settings

LEAST_HEAP_MB = {"local": 1024, "standalone": 450, "yarn": 450, "kubernetes": 450}
"""Below it Spark refuses to start, or only collects garbage: so much may be asked for, whatever is planned."""
CORES, INSTANCES = "spark.executor.cores", "spark.executor.instances"
TOKEN, AMOUNT = "spark.executor.resource.not_", ".amount"
POD_TEMPLATE = "spark.kubernetes.executor.podTemplateFile"


class Submitted(Struct, frozen=True):
    """A group, and what its application is submitted with."""

    group: Group
    cluster: Cluster
    settings: Settings
    """Those of the plan."""
    conf: Mapping[str, str]
    """Spark settings: all, as they are written for spark-submit."""
    author: frozenset[str] = frozenset()
    """Settings that the author names."""
    exact: bool = True
    """Whether executors are kept on the planned workers."""
    memory_factor: int = 1
    pod_template: str = ""
    """Text of the file that the settings name."""

    @property
    def asked(self) -> Counter[str]:
        """Executors on each worker: one for each container with an instance."""
        return Counter(box.worker for box in self.group.containers if box.instances)

    def read_number(self, name: str) -> int | None:
        """What the plan has to answer for; None where the author names it, -1 where there is no such number."""
        if name in self.author:
            return None
        text = self.conf.get(name, "").removesuffix("m")
        return int(text) if text.isdecimal() else -1


def check_submitted(submitted: Submitted) -> tuple[Violation, ...]:
    """All that is not as planned; none if all is."""
    if not submitted.asked:
        return ()
    return tuple(chain.from_iterable(rule(submitted) for rule in RULES[submitted.cluster.manager]))


def check_sent(group: Group, targets: Collection[str], order: Sequence[str], slots: int) -> tuple[Violation, ...]:
    """What the driver is told of the group's inside: every step of the submit, in the plan's list, by its slots."""
    missing = sorted(set(targets) - set(order))
    told = (
        ("order", tuple(order) != group.steps, "is not the plan's list"),
        ("order", bool(missing), f"leaves out {', '.join(missing)}"),
        ("slots", slots != group.slots, f"is not the plan's {group.slots}"),
    )
    return tuple(Violation("submitted", name, text) for name, is_broken, text in told if is_broken)


def _check_numbers(submitted: Submitted) -> Iterator[Violation]:
    """Cores of an executor, how many there are, the driver; and that Spark does not give idle ones back."""
    cores = next(box.cores for box in submitted.group.containers if box.instances)
    count = submitted.asked.total()
    standalone = submitted.cluster.manager == "standalone"
    number = ("spark.cores.max", _count_cores(submitted, cores * count)) if standalone else (INSTANCES, count)
    driver = "spark.driver.memory", submitted.group.driver.memory_mb
    for name, planned in ((CORES, cores), number, driver):
        if submitted.read_number(name) not in (None, planned):
            yield Violation("submitted", name, f"is not the plan's {planned}")
    dynamic = "spark.dynamicAllocation.enabled"
    if dynamic not in submitted.author and submitted.conf.get(dynamic) != "false":
        yield Violation("submitted", dynamic, "is on: executors that idle would be given back")


def _count_cores(submitted: Submitted, planned: int) -> int:
    """Of all executors: what the author's are whole ones of, one at least."""
    named = submitted.conf.get(CORES, "") if CORES in submitted.author else ""
    each = int(named) if named.isdecimal() and int(named) else 1
    return max(1, planned // each) * each


def _check_memory(submitted: Submitted) -> Iterator[Violation]:
    """Heap, and what the manager counts beside it, are the container's: never less, nor more than a worker has."""
    name, beside = "spark.executor.memory", "spark.executor.memoryOverhead"
    heap, overhead = submitted.read_number(name), 0
    if submitted.cluster.manager != "standalone":
        overhead = submitted.read_number(beside)  # type: ignore[assignment]  # the author's is none of ours
    if heap is None or overhead is None:
        return
    planned = max(box.memory_mb for box in submitted.group.containers)
    least = LEAST_HEAP_MB[submitted.cluster.manager] + overhead
    if min(heap, overhead) < 0 or not planned <= heap + overhead <= max(planned * submitted.memory_factor, least):
        yield Violation("submitted", name, f"is not the plan's {planned} MiB, nor what a failure adds")
    # A heap that swallowed its padding would be killed by the manager, as soon as it is full.
    padding = max(submitted.settings.padding_min_mb, int(heap * submitted.settings.padding_fraction))
    smallest = heap <= LEAST_HEAP_MB[submitted.cluster.manager]  # made larger than was planned, its padding was not
    if submitted.cluster.manager != "standalone" and overhead < padding and not smallest:
        yield Violation("submitted", beside, f"is less than the {padding} MiB that such a heap is padded with")
    yield from _check_workers_hold(submitted, heap + overhead, planned)


def _check_workers_hold(submitted: Submitted, memory_mb: int, planned: int) -> Iterator[Violation]:
    most = max(planned, LEAST_HEAP_MB[submitted.cluster.manager] + submitted.settings.padding_min_mb)
    for worker in submitted.cluster.workers:
        count = submitted.asked[worker.id]
        if memory_mb > most and count * memory_mb > worker.memory_mb:
            text = f"of {count} executors is more than the {worker.memory_mb} MiB of worker {worker.id!r}"
            yield Violation("submitted", "spark.executor.memory", text)


def _check_heap(submitted: Submitted) -> Iterator[Violation]:
    """Of a local application: one heap holds its one container."""
    name, heap = "spark.driver.memory", submitted.read_number("spark.driver.memory")
    planned = max(box.memory_mb for box in submitted.group.containers)
    most = max(planned, LEAST_HEAP_MB["local"]) * submitted.memory_factor
    if heap is not None and not planned <= heap <= most:
        yield Violation("submitted", name, f"is not the plan's {planned} MiB, nor what a failure adds")


def _check_tokens(submitted: Submitted) -> Iterator[Violation]:
    """Planned workers offer every token asked for; others lack one, where any token tells them apart."""
    names = [name for name in submitted.conf if name.startswith(TOKEN) and name not in submitted.author]
    asked = {name.removeprefix("spark.executor.resource.").removesuffix(AMOUNT) for name in names}
    planned = [worker for worker in submitted.cluster.workers if worker.id in submitted.asked]
    usable = set.intersection(*(_list_free_tokens(worker, submitted.asked[worker.id]) for worker in planned))
    for token in sorted(asked - usable):
        yield Violation("submitted", f"spark.executor.resource.{token}", "is not there on all planned workers")
    for worker in submitted.cluster.workers if submitted.exact else ():
        lacking = usable - set(worker.tokens)
        if worker.id not in submitted.asked and lacking and not lacking & asked:
            yield Violation("submitted", "spark.executor.resource", f"leaves worker {worker.id!r} open, unplanned")


def _list_free_tokens(worker: Worker, count: int) -> set[str]:
    free = worker.free.resources
    return {token for token in worker.tokens if free is None or free.get(token, 0) >= count}


def _list_hosts(submitted: Submitted) -> tuple[set[str], set[str]]:
    """Hosts of planned workers, and those of others alone."""
    planned = {worker.host for worker in submitted.cluster.workers if worker.id in submitted.asked}
    return planned, {worker.host for worker in submitted.cluster.workers} - planned


def _check_excluded(submitted: Submitted) -> Iterator[Violation]:
    """On YARN: all other nodes are excluded, and no planned one."""
    name = "spark.yarn.exclude.nodes"
    excluded = set(filter(None, submitted.conf.get(name, "").split(",")))
    _, others = _list_hosts(submitted)
    if name not in submitted.author and excluded != (others if submitted.exact else set()):
        yield Violation("submitted", name, "is not the nodes without a planned executor")


def _check_affinity(submitted: Submitted) -> Iterator[Violation]:
    """On Kubernetes: each alternative of the pod template's node affinity names the planned nodes, and no others."""
    if not submitted.exact:
        return
    planned, _ = _list_hosts(submitted)
    # The template is the author's with ours added: what counts is what it says in the end.
    found = json.loads(submitted.pod_template or "{}").get("spec", {}).get("affinity", {}).get("nodeAffinity", {})
    terms = found.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    if not terms or not all(_names_hosts(term, planned) for term in terms):
        yield Violation("submitted", POD_TEMPLATE, f"does not keep pods on {', '.join(sorted(planned))}")


def _names_hosts(term: Mapping[str, list[Mapping[str, object]]], hosts: set[str]) -> bool:
    rules = [rule for rule in term.get("matchExpressions", []) if rule.get("key") == "kubernetes.io/hostname"]
    return any(rule.get("operator") == "In" and set(rule.get("values", ())) == hosts for rule in rules)  # type: ignore[call-overload]


Rule = Callable[[Submitted], Iterator[Violation]]
RULES: Mapping[str, tuple[Rule, ...]] = {
    "local": (_check_heap,),
    "standalone": (_check_numbers, _check_memory, _check_tokens),
    "yarn": (_check_numbers, _check_memory, _check_excluded),
    "kubernetes": (_check_numbers, _check_memory, _check_affinity),
}
"""By cluster manager."""
