"""Hadoop YARN: nodes and the room left in a queue as a cluster; excluded nodes as the way to choose among them."""
