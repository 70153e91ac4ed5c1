"""Dataflow and cluster to plan: groups, sizes, times; the checker and the pages people read. Pure."""
