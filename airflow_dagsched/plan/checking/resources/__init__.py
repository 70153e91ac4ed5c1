"""Rules on containers: which instances they hold, what these need, what workers have free, where state and drivers are.

Each file is one rule, ``Facts -> Violations``. What a container needs is worked out anew from what it holds
(``required``), and what workers have from the cluster (``capacity``): nothing is taken from the plan's word.
"""
