"""The exact mode: all there is tried, or a solver's bound and what it finds. For small dataflows."""
