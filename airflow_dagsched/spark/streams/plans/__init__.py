"""Whether the flow's windows bound what a query keeps, told from its analysed plan before its first batch. Pure."""
