"""Tests, in the folders of the package they test; ``testbed`` has the real parts they start, ``system`` uses them all."""
