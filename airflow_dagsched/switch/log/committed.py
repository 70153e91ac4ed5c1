"""How far Spark has committed the batches of a graph that hands its state on: from its checkpoints alone."""

from __future__ import annotations

from contextlib import suppress

from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.switch.story import Story


def list_committed(flow: FlowPlaces, story: Story) -> dict[int, dict[str, int]]:
    """Owner whose state is to be handed on -> query -> last batch committed; nobody else is asked."""
    old, new = story.old, story.new
    if old is None or new is None or new.record.channel != "carry":
        return {}
    places = flow.name_epoch(old.record.x_folder)
    return {old.record.epoch: {step: find_committed(places, step) for step in old.queries}}


def find_committed(places: EpochPlaces, step: str) -> int:
    """The last batch of the query that Spark has committed; -1: none."""
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = [each.name for each in places.name_commits(step).iterdir()]
    # Beside them are checksums, and files that are being written.
    return max((int(each) for each in names if each.isdecimal()), default=-1)
