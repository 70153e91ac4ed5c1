"""Twister2's task schedulers, defects included: reached by the setting ``twister2_compatible`` of a built-in policy.

In: a request and Twister2's settings. Out: a schedule whose containers are numbered by position. Called by
``policies.built_in`` by way of ``schedulers``; ``batch_task``, which takes several graphs, waits for
``dependent_dataflows`` to be reached by an author.

    round_robin      RoundRobinTaskScheduler, RoundRobinBatchTaskScheduler
    first_fit        FirstFitStreamingTaskScheduler
    data_locality    DataLocalityStreamingTaskScheduler, DataLocalityBatchTaskScheduler
    batch_task       BatchTaskScheduler: several graphs, joined by receptors and collectors
    levels           the order of tasks in batch; ``containers`` what all but first fit report

What is wrong there is wrong here, so that answers can be compared; ``policies`` has what is wanted instead.
"""
