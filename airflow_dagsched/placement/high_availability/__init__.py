"""Stateful step instances go where their state is: assignment after KIP-441, in four strategies.

    state file  ──>  gather_facts  ──>  a strategy  ──>  fit_outcome  ──>  containers with copies, movements
                     by position        sticky, seed,    within what
                     in natural order   kafka, ...       workers have

In: the instances and workers of a request, the lags that workers report, the assignment of the plan before. Out: where
each instance is active, on standby and warming up, what moves and why, and whether to plan again soon. Callers:
``policy.load_policy`` makes ``schedule.HighAvailability``; ``policy.place_instances`` is the same without containers.
"""
