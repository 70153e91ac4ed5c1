"""The only importer of PySpark, shipped to the cluster: the driver program and what it reads and writes."""
