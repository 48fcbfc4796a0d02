"""Waits that can never end, and what is left at the end."""
