"""Story, state and reasons in words, for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY
from airflow_dagsched.switch.reasons import Code, Reason
from airflow_dagsched.switch.records import Aborted, Batch, Current, Drained, Epoch, Fence, Record, Started, Stopped
from airflow_dagsched.switch.signs import Ended, Refused, Sign, is_alive
from airflow_dagsched.switch.state import MEANING, find_state
from airflow_dagsched.switch.story import EpochStory, QueryStory, Story

SENTENCES: Mapping[Code, str] = {
    "already runs": "epoch {epoch}, asked for by run {text}, runs this code",
    "already followed": "run {text} follows epoch {epoch}, which is of this code: nothing is to be done",
    "unlike code": "the DAG processor, which asked for this run, reads other code than this worker ({text}): see to it "
    "that both have the same files, PYTHONPATH and Python; what is read here runs as epoch {epoch}",
    "already asked for": "epoch {epoch}, asked for by run {text}, is of this code",
    "switch ends first": "epoch {epoch} is taking over: there is no way back, so that ends first",
    "owner has no batch": "epoch {epoch} has no batch yet",
    "newest row unknown": "how far epoch {epoch} has read is not known of {names}: its next batch will say",
    "ahead of the clock": "source {names} has a row of {window}, further ahead of the clock than max_ahead",
    "windows are open": "{names} of epoch {epoch} emits rows of windows that may get more: nobody would own those",
    "windows stay open": "{names} of epoch {epoch} has written rows of windows that may get more, and runs no more: to "
    "go on without what it has not read of windows up to {window}, which is lost, give "
    "`airflow dagsched stream switch DAG --open`",
    "unlike windows": "windows of epoch {epoch} are {seconds:g} s long, and need not end where the new ones do: give "
    "window= a multiple or an even part of that, and switch once more from there",
    "longer windows": "epoch {epoch} emits nothing more, and may have ended inside a longer window than its own of "
    "{seconds:g} s: keep window= at that, or an even part of it, until this code runs, then change it",
    "source changed": "source {names} is read otherwise than by epoch {epoch}, whose place in it may mean nothing now: "
    "name one with start=",
    "carried source": "source {names} is read otherwise than by epoch {epoch}, or start= names another place in it: a "
    "state goes on with the very next row, so leave both as they were, or stop the stream and begin by replay",
    "other way of rows": "epoch {epoch} gets its rows in another way (channel=): stop the stream, then ask again",
    "inbox sources": "what fills the inboxes reads sources as for epoch {epoch}, and {names} would be read otherwise: "
    "stop the stream, and take channel='replay' for one epoch",
    "old runs again": "epoch {epoch} runs again, so it can be switched from",
    "old fails": "epoch {epoch}, from which to take over, fails",
    "old must emit": "epoch {epoch} must emit windows up to {window}, and can't: {text}",
    "replaced by a request": "run {text} asks for another graph",
    "replaced": "replaced by epoch {epoch} at window {window}",
    "no executors": "no executors in {seconds:g} s: free some of the cluster, or give deploy_within= more",
    "no progress": "no batch in {seconds:g} s: look at the page of Spark, or give stuck_within= more",
    "never catches up": (
        "behind the old graph after {seconds:g} s of batches: give it more cores, let batches have more rows, or give "
        "catch_up_within= more"
    ),
    "fails": "step {names} fails: {text}",
    "comes to nothing": "it was started again and again, and never came to a batch: {text}",
    "comes to nothing silently": (
        "it was started again and again, and ended each time before it could say why: what it printed is in "
        "epochs/{text}/output/driver.log of the flow's folder"
    ),
    "ordered": "ordered: {text}",
    "only forward": "windows are handed over already: deploy the code of epoch {epoch} to go back to it",
    "waits for confirm": "epoch {epoch} is ready to take over, once someone confirms it",
    "catches up": "epoch {epoch} is behind: until its watermark is {window}",
    "waits for rows": "{names} of epoch {epoch} has no batch yet: no rows come",
    "drains": "epoch {epoch} ends windows up to {window}: rows move its watermark, and nothing else",
    "hands on": "epoch {epoch} ends with its last batch, and hands its state on",
    "makes room": "epoch {epoch} starts once that is gone: in between, for as long as a start and what is missed take, "
    "the table gets nothing",
    "nothing runs": "no epoch runs, or is to run",
    "no switch": "no graph is about to take over",
    "nothing to confirm": "{names} of epoch {epoch} has no batch yet: there is nothing to look at",
    "needs no word": "epoch {epoch} takes over by itself as soon as it has caught up (confirm='auto')",
    "paused": "nothing is done here, as was ordered: remove pause-{text}.json from the newest epoch's orders to go on",
}


def tell_reason(reason: Reason) -> str:
    """The reason as a sentence without a full stop."""
    return SENTENCES[reason.code].format(
        epoch=reason.epoch,
        names=", ".join(map(repr, reason.names)) or "(not known)",
        window=tell_window(reason.window),
        seconds=reason.seconds,
        text=reason.text or "nothing is said of why",
    )


def tell_line(record: Record) -> str:
    """A record with its number and time."""
    return f"{record.n:>6}  {tell_window(record.at)}  {tell_record(record)}"


def tell_record(record: Record) -> str:
    """The record as a sentence without a full stop."""
    match record:
        case Epoch(epoch=epoch, run_id=run, channel=channel, x_why=why):
            return f"epoch {epoch} is asked for by run {run}: {channel}{f'; {why}' * bool(why)}"
        case Started(epoch=epoch, application=application):
            return f"epoch {epoch} has started as {application}"
        case Batch():
            return _tell_batch(record)
        case Fence(from_=old, to=new, upto=upto):
            return f"windows behind {tell_window(upto)} are epoch {new}'s, up to there epoch {old}'s"
        case Drained(epoch=epoch):
            return f"epoch {epoch} has emitted all windows that are its own"
        case Current(epoch=epoch):
            return f"epoch {epoch} is the owner"
        case Stopped(epoch=epoch, reason=reason):
            return f"epoch {epoch} has stopped: {reason}"
        case Aborted(epoch=epoch, reason=reason):
            return f"epoch {epoch} is given up: {reason}"


def _tell_batch(batch: Batch) -> str:
    windows = "no window" if batch.first is None else f"windows {tell_window(batch.first)} to {tell_window(batch.last)}"
    rows = f"{batch.kept} of {batch.rows} rows in the table"
    at = tell_window(batch.watermark)
    return f"epoch {batch.epoch}, {batch.query}, batch {batch.batch}: {windows}, {rows}, watermark {at}"


def tell_sign(sign: Sign, now: float) -> str:
    """What a driver says of itself, ``now`` in seconds since 1970."""
    told = [sign.phase if is_alive(sign, now) else f"silent for {now - sign.at:.0f} s"]
    told += [f"{name}: batch {number}" for name, number in sorted(sign.batch.items())]
    if sign.batch_s is not None:
        told.append(f"{sign.batch_s:.3g} s a batch, trigger {sign.trigger_s:g} s")
    if sign.rows_s is not None:
        told.append(f"{sign.rows_s:.3g} rows/s")
    told.append(f"watermark {tell_window(sign.watermark)}")
    counts = {
        "rows of state": sign.state_rows,
        "MiB of state": round(sign.state_bytes / 2**20, 1),
        "late rows": sign.late,
        "rows ahead of the clock": sign.ahead,
        "rows without event time": sign.nulls,
        "rows behind": sign.behind_rows,
        "s of event time behind": sign.behind_s,
    }
    told += [f"{count:,} {what}" for what, count in counts.items() if count]
    told += [each for each in (sign.ui, sign.waits_for) if each]
    return f"{_name_driver(sign.epoch)}: {', '.join(told)}"


def _name_driver(epoch: int) -> str:
    return {STANDBY: "standby", INBOX_SERVICE: "driver of the inboxes"}.get(epoch, f"driver of epoch {epoch}")


def tell_refused(refused: Refused) -> str:
    """Why there is no epoch of the newest code."""
    return (
        f"refused, as run {refused.run_id} found: {refused.reason}; not asked for again until the code changes, or by "
        "`airflow dagsched stream switch`"
    )


def tell_ended(epoch: int, ended: Ended) -> str:
    """How the last driver of an epoch ended."""
    if ended.kind is None:
        return f"the last {_name_driver(epoch)} ended as it should at {tell_window(ended.at)}"
    where = f" in step {ended.step!r}" if ended.step else ""
    return f"the last {_name_driver(epoch)} failed{where} at {tell_window(ended.at)}: {ended.message}"


def tell_story(story: Story, held: Collection[int] = ()) -> str:
    """All that is known of the flow, the newest record last.

    :param held: epochs whose lease somebody holds, as far as that is known.
    """
    state = find_state(story, held)
    head = f"after record {story.last}: {state} ({MEANING[state]})"
    lines = [line for number in sorted(story.epochs) for line in _tell_epoch(story, story.epochs[number])]
    return "\n".join([head, *lines])


def tell_window(window: float | None) -> str:
    """A window by its end, as people write it."""
    if window is None:
        return "none"
    try:
        return f"{datetime.fromtimestamp(window, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return f"{window:.10g} s"


def _tell_epoch(story: Story, epoch: EpochStory) -> Iterator[str]:
    record = epoch.record
    role = {story.owner: "owner, ", story.successor: "successor, "}.get(record.epoch, "")
    yield f"  epoch {record.epoch} of run {record.run_id}: {role}{_tell_standing(epoch)}"
    if record.x_why:
        yield f"    {record.x_why}"
    if epoch.into:
        yield f"    from window {tell_window(epoch.into.upto)} on, behind epoch {epoch.into.from_}"
    if epoch.out:
        yield f"    up to window {tell_window(epoch.out.upto)}, then epoch {epoch.out.to}"
    yield from (f"    {name}: {_tell_query(query)}" for name, query in sorted(epoch.queries.items()))


def _tell_standing(epoch: EpochStory) -> str:
    if epoch.aborted:
        return f"aborted: {epoch.aborted.reason}"
    if epoch.stopped:
        return f"stopped: {epoch.stopped.reason}"
    if epoch.drained:
        return "drained"
    return f"started as {epoch.started.application}" if epoch.started else "not started"


def _tell_query(query: QueryStory) -> str:
    last = query.last
    return (
        f"batch {last.batch}, watermark {tell_window(last.watermark)}, newest window {tell_window(query.newest_window)}"
    )
