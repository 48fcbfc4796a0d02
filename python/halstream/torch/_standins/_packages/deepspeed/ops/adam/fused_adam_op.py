"""Stand-in for DeepSpeed's operator ``fused_adam``."""

from halstream.torch._standins._multi_tensor import adam as multi_tensor_adam

__all__ = ["multi_tensor_adam"]
