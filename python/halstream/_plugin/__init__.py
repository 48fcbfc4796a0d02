"""Implementation of the pytest plugin."""
