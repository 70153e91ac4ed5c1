"""Spark's sessions, and what is hooked into them while a step runs."""
