"""Tests of the planner and its checker."""
