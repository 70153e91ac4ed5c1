"""Rules on containers, instances, copies of state, drivers and workers: nothing lost, twice, or too much."""
