"""Millions of rows through a stream that is changed three times while it runs; ``make test-proof`` runs it."""
