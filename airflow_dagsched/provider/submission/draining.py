"""Reads a child's output as fast as it comes, however slowly it is taken.

A task's log goes through its supervisor, which takes nothing while it waits for an API server that is away. The pipe
of a child that nobody reads fills up, and the child stands still.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

WAITING_CHARS = 32 * 1024 * 1024


class Drained:
    """The lines of ``source``, read by a thread of its own; what does not fit among those waiting is left out."""

    def __init__(self, source: Iterable[str], most_chars: int = WAITING_CHARS) -> None:
        self._source = source
        self._most = most_chars
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()
        self._held = 0
        self._left_out = 0
        self._ended = False
        # A daemon, as the pipe of a child that hangs may never end.
        threading.Thread(target=self._read_source, name="dagsched-output", daemon=True).start()

    def __iter__(self) -> Iterator[str]:
        while (line := self._take_line()) is not None:
            yield line

    def _take_line(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._left_out or self._ended)
            if self._lines:
                line = self._lines.popleft()
                self._held -= len(line)
                return line
            if self._left_out:
                said, self._left_out = f"... {self._left_out} lines of the driver's output left out here", 0
                return said
            return None

    def _read_source(self) -> None:
        try:
            for line in self._source:
                self._put_line(line)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _put_line(self, line: str) -> None:
        with self._changed:
            if self._left_out or self._held + len(line) > self._most:
                self._left_out += 1  # until all that came before is taken: what is left out is said in its place
            else:
                self._held += len(line)
                self._lines.append(line)
            self._changed.notify_all()
