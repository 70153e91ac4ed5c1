"""What authors of DAGs write: task group, steps, declarations."""
