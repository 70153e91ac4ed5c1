"""How a test takes hold of a step while it runs: by files in a folder the two share.

::

    test     close(gate) ───────── until reached(gate) ── kill, look, ... ── open(gate)
    step             pass_through(gate) ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ goes on

Lies beside the DAG files, so it is shipped to the driver program as an author's own module is.
"""

import os
import time
from pathlib import Path

HOME = Path(os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow")))
GATES = HOME / "gates"
NOTES = HOME / "notes"
TABLES = HOME / "tables"
WORK = HOME / "work"
OPENS_WITHIN_S = 600.0


def pass_through(gate: str) -> None:
    """Go on at once, or wait while the gate is closed. Raises ``TimeoutError`` if nobody opens it."""
    closed, reached = Path(f"{gate}.closed"), Path(f"{gate}.reached")
    deadline = time.monotonic() + OPENS_WITHIN_S
    while closed.exists():
        reached.touch()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{closed} was never removed")
        time.sleep(0.1)


def note(name: str, line: str) -> None:
    """What cannot be taken back: a line more in a file."""
    NOTES.mkdir(exist_ok=True)
    with (NOTES / name).open("a") as file:
        file.write(f"{line}\n")


def trip(wire: str, message: str) -> None:
    """Raise once for a ``wire`` stretched with ``once``, each time for one stretched with ``always``."""
    file = Path(f"{wire}.wire")
    if not file.exists():
        return
    if file.read_text() == "once":
        file.unlink()
    raise RuntimeError(message)
