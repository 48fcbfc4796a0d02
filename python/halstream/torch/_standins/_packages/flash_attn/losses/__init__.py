"""Stand-in for flash_attn.losses."""
