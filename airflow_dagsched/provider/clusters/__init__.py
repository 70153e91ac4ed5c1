"""The cluster behind a Spark connection, asked over HTTP."""
