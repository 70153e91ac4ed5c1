"""Archives of classes on this host: what fits it, where they lie, who may write them, and how they are made.

Neither Airflow nor PySpark: launch tasks come here, and so does the command ``dagsched class-archive``.
"""
