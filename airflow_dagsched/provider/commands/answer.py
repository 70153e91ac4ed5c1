"""What a command says: its result alone on standard output, or one line on standard error and an exit code."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from airflow_dagsched.cli import BAD_INPUT, DOES_NOT_FIT
from airflow_dagsched.errors import DagschedError, DoesNotFit

STREAMS = (1, 2)
"""Standard output and standard error, as the system numbers them."""


def print_answer(work: Callable[[], str]) -> None:
    """Print what ``work`` returns. Ends the process with the exit codes of ``dagsched`` where it is refused."""
    # A file, not a pipe: nobody reads it before all is said, and a pipe that is full blocks.
    with tempfile.TemporaryFile() as noise:
        refused = None
        try:
            with collect_output(noise):
                text = work()
        except DagschedError as error:
            refused = error
        except BaseException:  # no refusal of ours: what was printed before may explain it
            _print_noise(noise)
            raise
        if refused is not None:
            print(" ".join(str(refused).split()), file=sys.stderr)
            sys.exit(DOES_NOT_FIT if isinstance(refused, DoesNotFit) else BAD_INPUT)
        _print_noise(noise)
    print(text)


@contextmanager
def collect_output(noise: BinaryIO) -> Iterator[None]:
    """What is printed and logged meanwhile goes to ``noise``."""
    _flush_streams()  # what Python still holds belongs to where it was printed
    # By number: Airflow's loggers hold on to the stream they met first, so turning ``sys.stdout`` would not reach them.
    kept = [os.dup(stream) for stream in STREAMS]
    try:
        for stream in STREAMS:
            os.dup2(noise.fileno(), stream)
        yield
    finally:
        _flush_streams()
        for stream, own in zip(STREAMS, kept, strict=True):
            os.dup2(own, stream)
            os.close(own)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _print_noise(noise: BinaryIO) -> None:
    """On standard error: warnings of a DAG file, what its author prints, Airflow's log."""
    noise.seek(0)
    with open(STREAMS[1], "wb", closefd=False) as errors:
        shutil.copyfileobj(noise, errors)
