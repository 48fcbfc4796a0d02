"""What the plugin of pytest does with a test."""
