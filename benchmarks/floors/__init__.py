"""The same computations as one person would write them in one PySpark program: the floor."""
