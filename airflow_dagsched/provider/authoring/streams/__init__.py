"""How an author writes a stream: settings, sources, sinks, and what is refused. Few DAG files load it."""
