"""Containers: what one needs, and containers of one shape. The only place where either is told.

    sizing               plain numbers: what an instance needs, padding, how many run at once; the planner's, too
    requirements         of a request: what so many instances of each step hold at once, and the padding, once
    equal_containers     one shape for all of a streaming group, since a Spark application has one executor shape
    minimise_containers  streaming instances in fewer containers than a rule of thumb found
    packing              items in bins, where a search sees too little of many unlike instances

In: what instances need, settings, offers of workers. Out: amounts of a container with its padding, or containers with
the offer of each instance, or None where no way was found. Nothing here refuses: ``refusals`` does.

Callers: the policies; and the planner where it sizes groups, which counts in whole MiB and rounds up what it is told.
"""
