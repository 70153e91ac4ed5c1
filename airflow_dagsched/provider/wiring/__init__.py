"""Launch tasks and the edges that tie them into the author's DAG."""
