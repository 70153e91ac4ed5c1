"""Lays pyspark's files over those of pyspark-client, which owns the same paths, where the two are of unlike versions.

pip installs the two in an order of its own: after the client, nothing is to be done.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path


def installed_version() -> str:
    """The version that the files on the path say, whichever distribution they came from."""
    text = Path(str(distribution("pyspark").locate_file("pyspark/version.py"))).read_text("utf-8")
    found = re.search(r"""__version__[^=]*= *["']([^"']+)""", text)
    return found[1] if found else ""


def main() -> None:
    """Install pyspark's files again if others lie in their place."""
    wanted = distribution("pyspark").version
    if installed_version() != wanted:
        command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--force-reinstall", f"pyspark=={wanted}"], check=True)


main()
