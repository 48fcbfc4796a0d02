"""Stand-in for fbgemm_gpu.tbe."""
