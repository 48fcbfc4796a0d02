"""Where the stand-ins for vLLM's compiled modules lie; it stands in for nothing itself."""
