"""What one try of a launch task leaves for the next: asset events are emitted once, and none is lost."""

from pathlib import Path

import pytest

from airflow_dagsched.provider.runtime.memory import Memory


def test_a_try_that_was_followed_by_a_retry_emitted_nothing(tmp_path: Path) -> None:
    """
    try 1   writes down "a" ── dies before Airflow has heard that it ended well
    try 2   "a" is still to be told
    """
    Memory(tmp_path).note_good_end({"a"}, clear_number=0)
    assert Memory(tmp_path).emitted(clear_number=0) == frozenset()


def test_what_was_emitted_before_a_clear_is_known_after_it(tmp_path: Path) -> None:
    """run emits a, b ── cleared ── emits c ── cleared ──►"""
    Memory(tmp_path).note_good_end({"a", "b"}, clear_number=0)
    Memory(tmp_path).note_good_end({"c"}, clear_number=1)
    assert Memory(tmp_path).emitted(clear_number=1) == {"a", "b"}
    assert Memory(tmp_path).emitted(clear_number=2) == {"a", "b", "c"}


def test_a_good_end_starts_from_the_plan_again(tmp_path: Path) -> None:
    """The level of the next try, raised by a failure, falls back; what was emitted stays."""
    memory = Memory(tmp_path)
    memory.remember_level(level=2)
    assert Memory(tmp_path).level == 2
    memory.note_good_end({"a"}, clear_number=0)
    assert Memory(tmp_path).level == 0
    memory.remember_level(level=1)
    assert Memory(tmp_path).emitted(clear_number=1) == {"a"}


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{", b"7", b'"x"', b"\0\0\0", b"\xff", b'{"level": null, "emitted": {}}',
     b'{"level": 99, "emitted": {}}', b'{"level": 1, "emitted": [1]}', b'{"level": 1, "emitted": {"x": ["a"]}}',
     b'{"level": 1, "emitted": {"0": 3}}'],
)  # fmt: skip
def test_what_cannot_be_read_is_forgotten(tmp_path: Path, content: bytes) -> None:
    """A full disk, a crash of the machine: the try begins all the same, from the plan."""
    (tmp_path / "memory.json").write_bytes(content)
    memory = Memory(tmp_path)
    assert (memory.level, memory.emitted(clear_number=9)) == (0, frozenset())
    memory.note_good_end({"a"}, clear_number=0)
    assert Memory(tmp_path).emitted(clear_number=1) == {"a"}


def test_a_folder_in_its_place_costs_a_repeat(tmp_path: Path) -> None:
    (tmp_path / "memory.json").mkdir()
    assert Memory(tmp_path).level == 0
