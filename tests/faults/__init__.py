"""Streams whose processes are killed in every state of a switch; ``make test-faults`` runs it."""
