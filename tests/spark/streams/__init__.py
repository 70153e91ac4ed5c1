"""The queries of a stream."""
