"""What is submitted where a group does not fit what is free, or failed before.

In: the group's dataflow, the live cluster, what launches beside it have reserved, the level of an earlier failure. Out:
a plan of one application and what had to give way (``fit_to_free_cluster``), its parts where it is too large
(``split_group``), the next level after a failure (``levels``), or the reason why an application can never start
(``stranded``). Nothing here asks or waits: who calls does, and asks again.

Called by the launch task only. It plans as any other caller of ``plan``, so what is launched is what was checked.
"""
