"""Stateful step instances go where their state is: assignment after KIP-441, in four strategies."""
