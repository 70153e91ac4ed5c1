"""Spark's names of the settings that say how many executors there are, and how large."""

CORES, MEMORY, OVERHEAD = "spark.executor.cores", "spark.executor.memory", "spark.executor.memoryOverhead"
INSTANCES, MOST_CORES = "spark.executor.instances", "spark.cores.max"
