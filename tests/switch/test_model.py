"""Every order in which drivers, executors and a crash can come, played with the real protocol (``model``)."""

from __future__ import annotations

import pytest

from tests.switch.model import LENGTH, Broken, Look, Mode, Model, World, explore

STATES = {
    "replay": {"requested", "deploying", "catching_up", "fenced", "retiring", "steady"},
    "sequential": {"requested", "fenced", "retiring", "steady"},
    "carry": {"requested", "deploying", "fenced", "retiring", "steady"},
}


def check(mode: Mode, executors: int, crashes: int, least: int, length: int = LENGTH) -> None:
    """No window is lost or comes twice, or without a row, and the switch can always end."""
    model = Model(mode, length)
    explored = explore(model, executors, crashes)
    assert explored.stuck == ()
    assert explored.worlds >= least
    assert explored.states == STATES[mode]
    # Shown of tests that pass, too, by ``make test-faults``.
    print(f"{mode}, {executors} executors, {crashes} crashes: {explored.worlds} states seen, {explored.ends} ends")


def test_two_executors_at_once_in_every_order():
    check("replay", executors=2, crashes=0, least=20_000)


def test_one_crash_anywhere():
    check("replay", executors=1, crashes=1, least=15_000, length=3)


def test_with_room_for_one_graph_two_executors_and_one_crash():
    check("sequential", executors=2, crashes=1, least=10_000, length=4)


def test_where_state_is_handed_on_one_crash_anywhere():
    check("carry", executors=1, crashes=1, least=500)


@pytest.mark.faults
def test_where_state_is_handed_on_two_executors_and_two_crashes():
    check("carry", executors=2, crashes=2, least=5_000)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_two_executors_and_one_crash_in_every_order():
    check("replay", executors=2, crashes=1, least=300_000)


@pytest.mark.faults
def test_with_room_for_one_graph_two_executors_and_two_crashes():
    check("sequential", executors=2, crashes=2, least=50_000, length=4)


def test_without_a_look_at_what_is_committed_state_would_be_handed_on_that_is_not_there():
    class Hasty(Model):
        def look(self, world: World) -> Look:
            return super().look(world)._replace(done=((1, 99),))

    with pytest.raises(Broken, match="not on disk"):
        explore(Hasty("carry"), executors=1, crashes=1)


def test_a_world_from_which_no_end_is_to_be_had_is_found():
    """A protocol that never starts what is lost again."""

    class Forgetful(Model):
        def do(self, world: World, command: object) -> World:
            return world if "Deploy(epoch=1" in repr(command) else super().do(world, command)  # type: ignore[arg-type]

    assert explore(Forgetful("sequential"), executors=1, crashes=0).stuck == ()
    assert explore(Forgetful("sequential"), executors=1, crashes=1).stuck != ()
