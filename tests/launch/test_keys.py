"""Folder names for keys: one to one, never hidden, never a path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.spark.files.store import is_hidden

KEYS = st.text(max_size=300) | st.sampled_from(["", ".", "..", "_x", "a/b", "a%2Fb", "A=1", "é" * 200])


@given(KEYS, KEYS)
def test_different_keys_have_different_names(one: str, other: str):
    """What two outputs write never meets."""
    assert (escape_key(one) == escape_key(other)) == (one == other)


@given(KEYS)
def test_a_name_is_one_visible_folder(key: str):
    """Any file system takes it, and Spark reads what is in it."""
    name = escape_key(key)
    assert name
    assert name.isascii()
    assert len(name) < 256
    assert "/" not in name
    assert not is_hidden(name)
