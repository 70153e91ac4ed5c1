"""A group of a plan becomes one Spark application: settings, manifest, events, verdicts. Pure."""
