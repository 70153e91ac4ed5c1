"""Tests of how an author writes a stream."""
