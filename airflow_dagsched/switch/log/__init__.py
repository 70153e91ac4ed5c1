"""The files of a flow's log, and of what is seen beside it. No other room of ``switch`` knows files or a clock."""
