"""Stand-in for amp_C, apex's kernels over lists of tensors."""

from halstream.torch._standins._multi_tensor import adagrad as multi_tensor_adagrad
from halstream.torch._standins._multi_tensor import adam as multi_tensor_adam
from halstream.torch._standins._multi_tensor import adam_capturable as multi_tensor_adam_capturable
from halstream.torch._standins._multi_tensor import adam_capturable_master as multi_tensor_adam_capturable_master
from halstream.torch._standins._multi_tensor import axpby as multi_tensor_axpby
from halstream.torch._standins._multi_tensor import l2norm as multi_tensor_l2norm
from halstream.torch._standins._multi_tensor import l2norm_scale as multi_tensor_l2norm_scale
from halstream.torch._standins._multi_tensor import lamb as multi_tensor_lamb
from halstream.torch._standins._multi_tensor import scale as multi_tensor_scale
from halstream.torch._standins._multi_tensor import sgd as multi_tensor_sgd
from halstream.torch._standins._multi_tensor import unscale_l2norm as multi_tensor_unscale_l2norm

__all__ = [
    "multi_tensor_adagrad",
    "multi_tensor_adam",
    "multi_tensor_adam_capturable",
    "multi_tensor_adam_capturable_master",
    "multi_tensor_axpby",
    "multi_tensor_l2norm",
    "multi_tensor_l2norm_scale",
    "multi_tensor_lamb",
    "multi_tensor_scale",
    "multi_tensor_sgd",
    "multi_tensor_unscale_l2norm",
]
