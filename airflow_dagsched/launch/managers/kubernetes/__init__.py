"""Kubernetes: nodes and pods of the API server as a cluster; a pod template as the way to keep executors on nodes."""
