"""The plugin of pytest."""
