"""Tests of the driver program and what it reads and writes."""
