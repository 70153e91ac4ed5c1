"""Tests, in the folders of the package they test; ``testbed`` has the real parts, ``system`` uses them all."""
