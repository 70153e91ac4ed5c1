"""Containers: what one needs, and containers of one shape. The only place where either is told.

In: what instances need, settings, offers of workers. Out: amounts of a container with its padding
(``sizing``), equal containers for instances that stay (``equal_containers``), streaming instances in the
fewest containers (``minimise_containers``). Callers: the policies, and the planner where it sizes groups.
"""
