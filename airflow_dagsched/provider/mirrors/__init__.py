"""The tasks that show steps, and the triggers that watch launches for them."""
