"""Tests of what launch task, driver program and mirrors share."""
