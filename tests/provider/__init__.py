"""Tests of launch tasks, mirrors and commands."""
