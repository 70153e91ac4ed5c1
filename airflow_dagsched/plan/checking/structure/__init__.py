"""Rules on what is in which group, who waits for whom, and what is spilled: they hold on any cluster."""
