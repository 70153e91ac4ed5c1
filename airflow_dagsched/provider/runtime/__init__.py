"""One try of a launch task: facts, decision, apply."""
