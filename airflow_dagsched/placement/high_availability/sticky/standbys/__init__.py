"""Standbys of the strategy ``sticky``: where they are to be, and what a failure would leave of a level load.

    holders kept ──> what is missing is dealt ──> copies balanced ──> new ones exchanged ──> at rest: held ones too
    choose_standbys  _Deal                        load_balancer       failover               failover

In: the owners of all instances, their targets, and the seats that are free. Out: the workers of each instance's
standbys. ``choose_standbys`` is called by the strategy, ``failover.rearrange_standbys`` by its rounds, too.

``failures`` says what the loss of each worker would cost: hand-overs beyond those of what was lost, by fair shares and
a matching; ``weighted_failures`` the same where instances weigh differently; ``failover`` lowers it by exchanges that
leave the load of all copies as it is. ``spread`` counts the tags (rack, zone) that copies of an instance share, which
goes before load. KIP-441 asks for least-loaded workers only: the rest is ours.
"""
