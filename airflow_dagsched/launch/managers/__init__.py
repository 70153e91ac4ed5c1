"""What a cluster manager answers, as a :class:`~airflow_dagsched.model.cluster.Cluster`: one file a manager. Pure."""
