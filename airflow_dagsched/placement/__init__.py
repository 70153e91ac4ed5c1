"""Placement: which step instances are in which container on which worker. Pure; one file a policy."""
