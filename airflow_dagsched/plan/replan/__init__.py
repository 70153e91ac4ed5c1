"""Plans made part-way through a run."""
