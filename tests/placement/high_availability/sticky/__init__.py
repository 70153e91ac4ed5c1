"""Tests of the strategy ``sticky``."""
