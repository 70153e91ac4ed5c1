"""Conditions on partition columns: read from SQL, matched with the keys there are."""
