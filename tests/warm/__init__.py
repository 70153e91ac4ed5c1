"""Warm applications from a relay to their end, on real Spark."""
