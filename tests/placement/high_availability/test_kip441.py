"""Kafka's own answers, row by row. ``DAGSCHED_CASES=folder`` runs the rows of another file of this form."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.placement.high_availability.facts import gather_facts
from airflow_dagsched.placement.high_availability.policy import STRATEGIES, place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import Outcome
from airflow_dagsched.placement.reproductions.kafka.movements import Budget, move_actives
from airflow_dagsched.placement.reproductions.kafka.standbys import deal_standbys, is_tagged_alike
from airflow_dagsched.placement.reproductions.kafka_2020.balanced import Placed, deal_balanced, list_moves
from airflow_dagsched.placement.reproductions.kafka_2020.constrained import assign_constrained
from airflow_dagsched.placement.reproductions.kafka_2020.ranks import Ranking, rank_workers
from airflow_dagsched.placement.reproductions.kafka_2020.strategy import compute_active_skew, is_valid_prior
from tests.placement.high_availability import rows
from tests.placement.high_availability.rows import Row
from tests.placement.high_availability.simulated import Cluster, check_settled, stateful, stateless, workers

_NO_BROKER_RACKS = (
    "KIP-925 weighs racks of Kafka's brokers by topic partition; where a step's files are, data_locality weighs"
)
OUT_OF_SCOPE = {
    "rack_aware_active": _NO_BROKER_RACKS,
    "rack_aware_standby": _NO_BROKER_RACKS,
    "rack_aware_enabled": "the row says in words what Kafka's metadata lack, and gives no input",
}
"""Algorithm: why its rows are not run."""


def each(*algorithms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows.rows(*algorithms), ids=rows.name)


@each(*OUT_OF_SCOPE)
def test_out_of_scope(row: Row) -> None:
    pytest.skip(OUT_OF_SCOPE[row["algorithm"]])


RUN = frozenset(
    {
        "ha_current",
        "ha_rounds",
        "ha_convergence",
        "ha_scale",
        "active_task_movements",
        "compute_lag",
        "default_standby",
        "fallback_prior",
        "tag_aware_standby",
        "tag_aware_move_predicate",
        "kip_rank",
        "kip_constrained_balanced_assignment",
        "kip_propose_balanced_assignment",
        "kip_get_movements",
        "kip_previous_assignment_valid",
        "kip_balance_factor",
        "kip_original_assign",
    }
)
"""Algorithms whose rows are run."""


UNKNOWN = [row for row in rows.rows() if row["algorithm"] not in RUN | OUT_OF_SCOPE.keys()]


@pytest.mark.parametrize("row", UNKNOWN, ids=rows.name)
def test_unknown(row: Row) -> None:
    pytest.skip(f"row {row['name']!r} is of {row['algorithm']!r}, which nobody here knows")


def assert_met(row: Row, made: Outcome) -> None:
    """All that is known of the row's expectation; a row that expects something else besides is told, not failed."""
    assert rows.broken(row, made) == []
    if unknown := rows.list_unknown(row):
        pytest.skip(f"row {row['name']!r} also expects {', '.join(unknown)}, which nobody here knows")


def placed_by(row: Row, strategy: str) -> Outcome:
    return place_instances(
        rows.instances(row),
        rows.workers(row),
        rows.lags(row),
        rows.settings(row, strategy),
        previous=rows.previous(row),
    )


@each("ha_current", "fallback_prior")
def test_trunk(row: Row) -> None:
    assert_met(row, placed_by(row, "kafka"))


@each("kip_original_assign")
def test_first_code(row: Row) -> None:
    assert_met(row, placed_by(row, "kafka_2020"))


@each("ha_rounds")
def test_trunk_round_by_round(row: Row) -> None:
    """Before each round an active copy runs, a standby or warm-up has caught up, the rest is lost."""
    start, event = row["config"]["start"], row["config"]["event"]
    names = [at for at in [*start, event.get("add")] if at and at != event.get("drop")]
    cluster = Cluster(rows.instances(row), [rows.Worker(at) for at in names], rows.settings(row, "kafka"))
    cluster.last = rows.previous(
        {"instances": [{"id": at, "prev_active": c["active"], "prev_standby": c["standby"]} for at, c in start.items()]}
    )
    for expected in row["expect"]["observed_on_kafka_classes"]["rounds"]:
        made = cluster.step()
        assert rows.by_worker(made.assignment.active, names) == expected["active"]
        assert rows.copies_of(made.assignment, names) == expected["standby_incl_warmup"]
        assert made.follow_up == expected["probing_rebalance"]


@each("ha_convergence")
@pytest.mark.parametrize("strategy", ["kafka", "sticky"])
def test_converges(row: Row, strategy: str) -> None:
    tasks, count = row["tasks"], row["instances"]["count"]
    steps = -(-tasks["stateful_count"] // tasks["partitions_per_subtopology"])
    cluster = Cluster(
        [*stateful(tasks["stateful_count"], steps), *stateless(tasks["stateless_count"])],
        workers(count),
        rows.settings(row, strategy),
        total=tasks["end_offset_sum_per_stateful_task"],
    )
    for event, most in zip(
        (None, *row["config"]["events"]), row["expect"]["asserted"]["max_rebalances_per_phase"], strict=True
    ):
        if event == "drop_first":
            cluster.leave(cluster.workers[0].id)
        elif event is not None:
            cluster.join(*workers(1, first=count + 1))
        assert cluster.settle() <= most
        check_settled(cluster)


@each("ha_scale")
def test_scale(row: Row) -> None:
    """That it ends, with a copy on every worker; its speed is the benchmark's. A consumer is a thread of a worker."""
    count, tasks = row["instances"]["count"], row["tasks"]
    threads = row["instances"].get("threads", row["instances"].get("capacity", 1))
    cluster = Cluster(
        [*stateful(tasks["stateful_count"]), *stateless(tasks["stateless_count"])],
        [replace(worker, capacity=threads) for worker in workers(count)],
        rows.settings(row, "kafka"),
        total=tasks["end_offset_sum_per_stateful_task"],
    )
    for _ in range(2):
        made = cluster.step()
        clients = len({*made.assignment.active.values()})
        # Kafka's test counts all threads of all clients; a row may as well count the clients.
        assert row["expect"]["asserted"]["consumers_in_result"] in (clients * threads, clients)


@each("active_task_movements")
def test_movements_of_actives(row: Row) -> None:
    """The row says who has caught up, whatever the limit: lag 0 does, so the limit is 0."""
    facts = rows.facts({**row, "config": {**row["config"], "acceptable_recovery_lag": 0}})
    for instance, ready in row["config"]["caught_up_clients"].items():
        assert [facts.get_id(at) for at in facts.find_caught_up(facts.position[instance])] == ready
    copies = rows.given_copies(facts, row)
    found = move_actives(copies, Budget(row["config"]["max_warmup_replicas"]))
    expected, names = row["expect"]["asserted"], [worker.id for worker in facts.workers]
    assert len(found) == expected["movements_needed"]
    if "active" in expected:
        assert rows.by_worker(copies.make_assignment().active, names) == expected["active"]
        assert rows.copies_of(copies.make_assignment(), names) == expected["standby"]


@each("compute_lag")
def test_a_stateless_instance_has_no_lag(row: Row) -> None:
    """The other rows tell lags from offsets: here a worker reports its lag."""
    config = row["config"]
    if "raises" not in row["expect"]["asserted"]:
        pytest.skip("workers report lags, not offsets")
    stateless = rows.Instance(config["lookup"], config["lookup"], stateful=False)
    facts = gather_facts([*rows.instances(row), stateless], rows.workers(row), {}, Settings())
    with pytest.raises(InvalidInput, match="has no lag"):
        facts.get_lag(facts.position[config["lookup"]], 0)


@each("default_standby", "tag_aware_standby")
def test_standbys(row: Row) -> None:
    """Where Kafka goes by hash order, the row gives that order."""
    facts = rows.facts(row)
    copies = rows.given_copies(facts, row)
    order = [facts.position[at] for at in row["config"].get("task_order", ())]
    missing = deal_standbys(copies, order or None)
    standby = copies.make_assignment().standby
    held = rows.by_worker(standby, facts.worker_at)
    expected = {**row["expect"]["asserted"], **row["expect"].get("derived", {})}
    for key, value in expected.items():
        match key:
            case "remaining_standbys":
                left = {facts.instances[at].id: count for at, count in missing.items() if count}
                assert left == {at: count for at, count in value.items() if count}
            case "standbys_per_task":
                assert {len(at) for at in standby.values()} == {value}
            case "warnings_logged":
                assert sum(count > 0 for count in missing.values()) == value
            case "standby_total":
                assert sum(map(len, standby.values())) == value
            case "standby":
                assert held == value
            case "allowed_standby_counts":
                assert all(len(held[worker]) in counts for worker, counts in value.items())
            case "allowed_standby_clients":
                assert all(sorted(standby[at]) in map(sorted, allowed) for at, allowed in value.items())
            case _:
                pytest.fail(f"unknown expectation {key}")


@each("tag_aware_move_predicate")
def test_moves_of_spread_standbys(row: Row) -> None:
    facts, config = rows.facts(row), row["config"]
    source, target = facts.worker_at[config["source"]], facts.worker_at[config["destination"]]
    if config["other_holder"] is not None:
        pytest.skip("trunk asks for equal tags, whoever else holds the instance")
    assert is_tagged_alike(facts, source, target) == row["expect"]["asserted"]["allowed"]


@each("kip_rank")
def test_first_code_ranks(row: Row) -> None:
    facts = rows.facts(row, "kafka_2020")
    ranking = rank_workers(facts)
    for instance, expected in row["expect"]["asserted"]["ranked_clients"].items():
        at = facts.position[instance]
        assert [[facts.get_id(worker), ranking.ranks[at][worker]] for worker in ranking.list_best_first(at)] == expected


@each("kip_constrained_balanced_assignment")
def test_first_code_actives_by_rank(row: Row) -> None:
    facts = rows.facts(row)
    ranks = {
        facts.position[instance]: {facts.worker_at[worker]: row["lags"][worker][instance] for worker in facts.worker_at}
        for instance in facts.position
    }
    capacity = [worker.capacity for worker in facts.workers]
    placed = assign_constrained(Ranking(ranks), capacity, row["config"]["balance_factor"])
    assert in_order(row, placed) == row["expect"]["asserted"]["active_in_order"]


@each("kip_propose_balanced_assignment")
def test_first_code_even_deal(row: Row) -> None:
    facts = rows.facts(row)
    capacity = [worker.capacity for worker in facts.workers]
    placed = deal_balanced(facts.stateful, capacity, row["config"]["balance_factor"])
    assert in_order(row, placed) == row["expect"]["asserted"]["active_in_order"]


def in_order(row: Row, placed: Placed) -> rows.Held:
    facts = rows.facts(row)
    return {facts.get_id(at): [facts.instances[one].id for one in held] for at, held in enumerate(placed)}


@each("kip_get_movements")
def test_first_code_movements(row: Row) -> None:
    facts, config = rows.facts(row), row["config"]
    now, target = (
        [[facts.position[at] for at in config[key].get(worker, ())] for worker in facts.worker_at]
        for key in ("constrained", "balanced")
    )
    expected = row["expect"]["asserted"]
    if "raises" in expected:
        with pytest.raises(InvalidInput):
            list_moves(now, target, config["max_warmup_replicas"])
        return
    found = list_moves(now, target, config["max_warmup_replicas"])
    named = [[facts.instances[at].id, facts.get_id(source), facts.get_id(to)] for at, source, to in found]
    assert named == expected["movements_task_source_destination"]


@each("kip_previous_assignment_valid")
def test_first_code_prior_is_valid(row: Row) -> None:
    assert is_valid_prior(rows.facts(row, "kafka_2020")) == row["expect"]["asserted"]["previous_assignment_valid"]


@each("kip_balance_factor")
def test_first_code_skew(row: Row) -> None:
    assert compute_active_skew(rows.facts(row, "kafka_2020")) == row["expect"]["asserted"]["balance_factor"]


def test_strategies_are_those_of_the_settings() -> None:
    assert set(STRATEGIES) == {"sticky", "seed", "kafka_2020", "kafka"}
