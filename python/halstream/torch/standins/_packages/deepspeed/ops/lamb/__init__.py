"""Where the stand-ins for operators of DeepSpeed lie; it stands in for nothing itself."""
