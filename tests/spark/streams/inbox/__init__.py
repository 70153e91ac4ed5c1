"""Inboxes on disk."""
