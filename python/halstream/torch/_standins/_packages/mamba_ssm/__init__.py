"""Stand-in for mamba_ssm: selective scans."""

from .ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn

__all__ = ["mamba_inner_fn", "selective_scan_fn"]

__version__ = "1.2.2"
