"""Rules on how long groups take, in slots that they may have, and when they start: no earlier than their inputs end."""
