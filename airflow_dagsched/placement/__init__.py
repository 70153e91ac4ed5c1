"""Placement: which step instances are in which container on which worker.

    dataflow, offers, state  ──>  policy.schedule  ──>  TaskSchedulePlan      containers, instances, assignment
                                       │
           request.make_request        │  what is to be placed: steps with levels, needs and reads; offers
           offer_capacity, refusals    │  what is left of each offer; what no placement could do
           policies/                   │  an offer for each instance: one file a policy
           high_availability/          │  the same where instances have state: where it is, with standbys
           schedule.make_schedule      ▼  containers with what they need

In: a dataflow, the workers as offers of containers, the state of an earlier plan. Out: a schedule, or ``DoesNotFit``
with what is needed and what there is. Pure: no clock, no files, nothing of Airflow, Spark or the planner; equal
arguments, in any order, give equal schedules.

Callers: the planner's pass that applies a policy, by ``policy.load_policy``; the planner where it sizes groups, by
``containers``; authors of policies of their own, by ``policy.PlacementPolicy`` and ``values``.

Rooms: ``policies`` the built-in rules; ``containers`` what a container needs, for the planner too;
``high_availability`` the assignment of stateful instances; ``reproductions`` other systems' algorithms to the letter.
"""
