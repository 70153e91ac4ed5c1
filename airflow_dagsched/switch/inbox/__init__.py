"""Rows that wait for the graph that is to have them: an inbox for each source, which a service of the flow fills.

::

    source ── service ──> entry 1: epoch 1   entry 2: epoch 1   hold for 2 │ fence │ entry 4: epoch 1, epoch 2, dead
              one query                                         no entry can get a number here by the old rule

Each source has a log of its own, numbered as the flow's is. An *entry* says which files of a batch are the inbox's from
now on. A *hold* comes between two entries: what is behind it is routed by the fence, so that waits until there is one,
or until the switch is given up. The fence is behind all rows that were routed before the holds, of all sources: so each
of those is the old graph's, and none is lost, without anything being stopped.
"""
