"""Secrets, taken out of all that leaves a launch task or its driver program."""
