"""The driver program: runs the steps of one manifest in one Spark application."""
