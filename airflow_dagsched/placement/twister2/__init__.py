"""Twister2's own schedulers with their defects, for those who need the same plans as there. Master of 2020."""
