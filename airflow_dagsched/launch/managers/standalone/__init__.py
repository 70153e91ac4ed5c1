"""Spark's own Master: its workers as a cluster; tokens, as custom resources, as the way to choose among them."""
