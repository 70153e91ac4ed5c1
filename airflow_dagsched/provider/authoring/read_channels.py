"""Channels as they are: what their two steps declare of them, and what the author says beside."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.dataflow import Channel
from airflow_dagsched.provider.spec.channel_declaration import DeclaredChannel
from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep

NOTHING_SAID = DeclaredChannel()


def build_channel(
    steps: Mapping[str, AuthoredStep], output: Output, reader: str, blocks: Mapping[str, tuple[str, ...]]
) -> Channel:
    """The channel from ``output`` to step ``reader``. Behind a table that is written it is buffered.

    :param blocks: step -> all steps of its repeat block.
    Raises :class:`InvalidInput` for what is said of it and cannot be.
    """
    writer, taker = steps[output.step], steps[reader]
    said = taker.channels.get(output, NOTHING_SAID)
    is_table = writer.declared.writes is not None and not output.name
    if is_table and said.kind == "pipelined":
        raise taker.make_error(
            f"{output.step!r} writes a table, and its rows are read from there: leave it out", "kind"
        )
    if said.kind == "buffered" and reader in blocks.get(output.step, ()):
        raise taker.make_error(f"{output.step!r} repeats with it: nothing is stored between two rounds", "kind")
    if said.routing == "forward":
        _check_forward(writer, taker)
    return Channel(
        src=output.step,
        dst=reader,
        output=output.name,
        kind="buffered" if is_table else said.kind or "pipelined",
        bytes=said.bytes or 0,
        routing=said.routing or "shuffle",
    )


def _check_forward(writer: AuthoredStep, reader: AuthoredStep) -> None:
    sources, targets = writer.declared.instances, reader.declared.instances
    if sources != targets:
        rule = f"'forward' needs equal parallelism: {writer.id!r} has {sources}, {reader.id!r} {targets}"
        raise reader.make_error(rule, "routing")
