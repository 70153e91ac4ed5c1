"""Tests of bin packing."""
