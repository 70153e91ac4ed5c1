"""Hadoop YARN."""
