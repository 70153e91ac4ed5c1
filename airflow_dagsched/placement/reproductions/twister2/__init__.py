"""Twister2's task schedulers, defects included: reached by the setting ``twister2_compatible`` of a built-in policy.

In: a request and Twister2's settings. Out: a schedule whose containers are numbered by position. Called by
``policies.built_in`` by way of ``schedulers``. Several graphs at once, ``batch_task`` and ``connected_dataflows``, are
there for comparison alone: an author's dataflows are planned together by ``merge_dataflows`` of the planner.

    round_robin      RoundRobinTaskScheduler, RoundRobinBatchTaskScheduler
    first_fit        FirstFitStreamingTaskScheduler
    data_locality    DataLocalityStreamingTaskScheduler, DataLocalityBatchTaskScheduler
    batch_task       BatchTaskScheduler: several graphs, joined by receptors and collectors
    levels           the order of tasks in batch; ``containers`` what all but first fit report

What is wrong there is wrong here, so that answers can be compared; ``policies`` has what is wanted instead.
"""
