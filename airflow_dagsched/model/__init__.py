"""What the author declares: dataflow, cluster, state; their order, their rules, their JSON. Pure."""
