"""Secrets, taken out of all that leaves a launch task or its driver program: manifest, events, logs, command lines.

In: values that may hold passwords, and the secrets that are known. Out: the same without them. ``Masking`` holds what
is known, in every form in which it may be written; what looks like a password is taken out though nobody knows it.
What must carry a secret (Spark's settings, Java's options) goes by a file or the environment: everybody
may read a command line.

Called by provider and driver program, before anything is printed, pushed or written where others may read.
"""
