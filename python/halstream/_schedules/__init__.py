"""Schedules of the host device: tokens, exploring, shrinking, explaining."""
