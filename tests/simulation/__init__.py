"""A deterministic simulator: the real leases, commits, swaps and retention on files and a clock that are simulated.

One seed is one history: who writes what and when, who is killed, frozen or slow at which store operation, and
who goes on after each. The same seed gives the same trace, operation by operation.
"""
