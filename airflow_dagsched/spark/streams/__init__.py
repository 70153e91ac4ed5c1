"""Queries of a stream's epoch, on Spark."""
