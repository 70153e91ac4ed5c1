"""Tests of the checker of logs."""
