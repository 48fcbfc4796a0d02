"""Logs of operations, and the timelines made of them."""
