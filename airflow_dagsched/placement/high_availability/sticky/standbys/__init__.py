"""Standbys of the strategy ``sticky``: where they are to be, and what a failure would leave of a level load.

In: the owners of all instances and the seats that are free. Out: the workers of each instance's standbys.
``choose_standbys`` is called by the strategy, ``failover.rearrange_standbys`` by its rounds.
"""
