"""Campaigns: the schedules of tests, divided among the workers of an engine."""
