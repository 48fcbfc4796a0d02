"""The real torch on halstream's streams: torch's CUDA device type is taken over."""
