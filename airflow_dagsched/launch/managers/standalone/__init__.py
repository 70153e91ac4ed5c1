"""Spark's own Master."""
