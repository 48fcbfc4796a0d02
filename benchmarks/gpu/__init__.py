"""What streams cost on a GPU, beside the peers, and what its driver does; see run.py and probes.py."""
