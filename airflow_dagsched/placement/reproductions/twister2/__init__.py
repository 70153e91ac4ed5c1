"""Twister2's task schedulers, defects included: reached by the setting ``twister2_compatible`` of a built-in policy.

In: a request and Twister2's settings. Out: a schedule whose containers are numbered by position. Called by
``policies.built_in`` by way of ``schedulers``; ``batch_task``, which takes several graphs, waits for dependent dataflows.
"""
