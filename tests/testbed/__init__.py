"""Real parts that tests start for themselves."""
