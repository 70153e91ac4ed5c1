"""The cluster behind a Spark connection, asked over HTTP: no Java, no Spark, and every answer within a time.

Comes in: an Airflow connection, or a location. Goes out: a ``Cluster`` as it is now (``PlannerHook.cluster``), what
is in a folder and who holds its blocks (``folder_listing``, ``webhdfs``), reservations of launches that are just
starting. Whoever doesn't answer is a ``ClusterUnknown``; what that means is the caller's to say: a launch is refused,
a preference is left out. ``PlannerHook`` is public: people plan with it in a shell. Called by ``runtime``,
``submission`` and the commands.
"""
