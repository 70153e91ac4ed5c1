"""Rules on what is in which group, who waits for whom, and what is spilled: they hold on any cluster.

Each file is one rule, ``Facts -> Violations``. Of these, members, channels, waits and settings are all that can be said
of a plan file at a parse, where no cluster is known (``checking.check_groups``).
"""
