"""Which step instances go to which worker: one policy a file or folder. Pure."""
