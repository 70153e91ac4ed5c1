"""The service that routes rows into a flow's inboxes: a program of its own, in an application of its own."""
