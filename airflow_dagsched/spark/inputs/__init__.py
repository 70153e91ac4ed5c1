"""Declared tables as steps read them."""
