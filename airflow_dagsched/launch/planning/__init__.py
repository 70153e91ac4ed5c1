"""The one way from facts to a plan and to what spark-submit is told: whoever plans a run, or prints one, takes it.

    Facts ──plan_run──> Planned ──add_settings──> the plan, each group with the settings of its application

In: one value with all that a plan is made of. Out: the plan of the whole run, which names its facts; a launch takes
its own group of it, a command prints it, the forecast goes on from it. Nothing here asks: who calls has asked.

May be called by launches, commands and hooks. It names ``plan`` and the settings of ``managers``.
"""
