"""The search for groups: groupings, small changes to them, and the choice among them."""
