"""A stream of flights whose graph is changed while it runs."""
