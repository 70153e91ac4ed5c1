"""Plans as people read them: a page of text, and pictures."""
