"""cuda.core._utils.cuda_utils (1.2.2): its exceptions."""

from .._errors import CUDAError, NVRTCError

__all__ = ["CUDAError", "NVRTCError"]
