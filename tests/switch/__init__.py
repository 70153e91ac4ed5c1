"""Tests of how a streaming graph is changed for another."""
