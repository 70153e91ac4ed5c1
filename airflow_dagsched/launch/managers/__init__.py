"""One folder a cluster manager: ``live`` reads what it answers as a cluster, ``submit`` writes what it is told. Pure.

In: bytes of an answer, or a plan's group. Out: a :class:`~airflow_dagsched.model.cluster.Cluster`, or a ``Submission``:
Spark settings, and texts of files that settings name. Who fetches the answers and writes the files is the provider.
Answers of unknown shape are ``ClusterUnknown``, with the address that was asked and the field that is wrong; unknown
fields are passed over, since a newer manager adds some.

Files beside the folders are for all managers: what executors there are (``executors``), what is common to all settings
(``settings``), what an author may set (``author_conf``), who holds which block (``hosts``, ``webhdfs``).
"""
