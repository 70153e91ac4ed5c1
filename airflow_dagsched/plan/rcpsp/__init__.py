"""Resource-constrained project scheduling: activities with durations, demands and order, done soonest. Pure."""
