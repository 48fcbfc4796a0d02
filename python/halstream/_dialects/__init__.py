"""What several dialects share; what only one of them uses lies beside that dialect."""
