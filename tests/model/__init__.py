"""Tests of the model: order, codec, rules."""
