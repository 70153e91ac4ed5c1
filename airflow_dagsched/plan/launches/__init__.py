"""Groups and ordinary tasks on a time line, and in which order they are launched."""
