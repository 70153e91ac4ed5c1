"""Streams from outside: rows that come in, drivers as processes of their own, and the table they leave behind."""
