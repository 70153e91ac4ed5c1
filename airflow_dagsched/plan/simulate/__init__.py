"""Runs plans on a modelled cluster: runtimes vary, applications fail, workers are lost, launches compete for room.

    plans, dataflows ──jobs──┐
    conditions ───────luck───┼──run──> when each job ran, on which attempt; completions, utilisation, retries
    cluster, policy ──room───┘

Words. *Work*: a plan, its dataflow, and when it is submitted. *Job*: a group of it, or an ordinary task, which
takes no room. *Luck*: how much longer each job takes than planned, when each attempt fails, when each worker is
lost; drawn before the run, so that all policies meet the same. *Policy*: which waiting job starts first, and where.

Guarantee. Without noise, failures and other works, the policy ``plan`` ends at the plan's makespan; on other
policies it may end earlier or later. Equal inputs give the equal outcome. Time is near linear in the jobs.
"""
