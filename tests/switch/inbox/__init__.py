"""Inboxes."""
