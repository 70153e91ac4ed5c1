"""A group on Spark's own Master: equal executors, as many as containers, kept on their workers by tokens.

The Master accounts for an executor's heap alone, so the heap is all of the container: what is granted is
what was planned. It hands executors out one worker after another (``spark.deploy.spreadOut``), which brings
each worker its share where the plan gives all workers equally many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_dagsched.errors import DoesNotFit, InvalidInput, LaunchRefused
from airflow_dagsched.launch.managers.executors import Executors, Submission
from airflow_dagsched.launch.protocol.executor_settings import CORES, MEMORY, MOST_CORES
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.plan.passes.pin_hosts import TOKEN_PREFIX, choose_exclusion

RESOURCE = "spark.executor.resource."
TOKENS = f"{RESOURCE}{TOKEN_PREFIX}"
"""With this begin the settings that keep executors where they are planned."""
_ASKED = re.compile(r"spark\.executor\.resource\.(.+)\.amount")


def make_standalone_submission(asked: Executors, cluster: Cluster, *, exact: bool) -> Submission:
    """``exact``: on the planned workers only, as far as tokens can say so; else wherever there is room."""
    # A request for resources is a conjunction, there is no OR: so it can't say where to go, only where not to.
    tokens = choose_exclusion(asked.on, cluster.workers).tokens if exact else ()
    return Submission(
        {
            CORES: str(asked.cores),
            MEMORY: f"{asked.memory_mb}m",
            # Not ``spark.executor.instances``: the Master ignores it unless dynamic allocation is on.
            MOST_CORES: str(asked.cores * asked.count),
            # Without ``spark.task.resource`` no task takes any of it: that costs a warning in the log.
            **{f"{RESOURCE}{token}.amount": "1" for token in tokens},
        }
    )


def check_offered(conf: Mapping[str, str], workers: Sequence[Worker]) -> None:
    """Raise where no worker has all custom resources that ``conf`` asks of an executor.

    The Master would let the application wait for ever, without an error. Whatever asked for it, counts: plan,
    author, or connection. ``DoesNotFit`` for what no worker offers, ``LaunchRefused`` for what others hold now,
    ``InvalidInput`` for an amount that is none.
    """
    wanted = _read_wanted(conf)
    if not wanted or any(_has_all(_get_free(worker), wanted) for worker in workers):
        return
    short = _find_shortage(wanted, [_get_offered(worker) for worker in workers])
    if short is not None:
        raise short
    # All of it is offered somewhere, so others hold it: a later try may find it free.
    held = _find_shortage(wanted, [_get_free(worker) for worker in workers])
    raise LaunchRefused("an executor", f"{held}: others hold the rest", "let them end, or ask for less", passing=True)


def _find_shortage(wanted: Mapping[str, int], offers: Sequence[Mapping[str, int]]) -> DoesNotFit | None:
    """The first resource that no offer has enough of, or that none has all; None: one has all."""
    if any(_has_all(offer, wanted) for offer in offers):
        return None
    for name, amount in sorted(wanted.items()):
        most = max((offer.get(name, 0) for offer in offers), default=0)
        if most < amount:
            return DoesNotFit("an executor", f"custom resource {name!r} of a worker", amount, most)
    return DoesNotFit("an executor", f"workers that offer all of {', '.join(sorted(wanted))}", 1, 0)


def list_offering(conf: Mapping[str, str], workers: Iterable[Worker]) -> Iterator[Worker]:
    """Those that offer all custom resources that ``conf`` asks of an executor, whoever holds them now."""
    wanted = _read_wanted(conf)
    return (worker for worker in workers if _has_all(_get_offered(worker), wanted))


def _read_wanted(conf: Mapping[str, str]) -> dict[str, int]:
    return {match[1]: _parse_amount(key, amount) for key, amount in conf.items() if (match := _ASKED.fullmatch(key))}


def _parse_amount(setting: str, text: str) -> int:
    try:
        amount = int(text)
    except ValueError:
        amount = -1
    if amount < 0:
        raise InvalidInput("Spark settings", setting, f"{text!r} is no whole number of pieces")
    return amount


def _has_all(offer: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    return all(offer.get(name, 0) >= amount for name, amount in wanted.items())


def _get_offered(worker: Worker) -> Mapping[str, int]:
    return worker.resources or dict.fromkeys(worker.tokens, 1)


def _get_free(worker: Worker) -> Mapping[str, int]:
    """What is offered, where the manager does not tell what is free."""
    return _get_offered(worker) if worker.free.resources is None else worker.free.resources
