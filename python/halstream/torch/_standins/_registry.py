"""Which packages have a stand-in, and which of them the environment asks for."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .._redirect.errors import RedirectError
from . import _deepspeed

__all__ = ["STANDINS", "VARIABLE", "Standin", "chosen"]

VARIABLE = "HALSTREAM_TORCH_STANDINS"


@dataclass(frozen=True)
class Standin:
    """A package with a stand-in.

    Attributes
    ----------
    name : str
        How ``HALSTREAM_TORCH_STANDINS`` calls it.
    serves : str
        What it has, for the line that it says.
    modules : tuple of str
        The modules that are served by themselves; those below them are, too.
    distribution : tuple of str
        Name and version for `importlib.metadata`; empty where the package is found by its modules only.
    compiled : tuple of str
        Modules without which an installed package cannot be imported, and is replaced as a whole.
    """

    name: str
    serves: str
    modules: tuple[str, ...]
    distribution: tuple[str, str] | tuple[()] = ()
    compiled: tuple[str, ...] = ()


STANDINS = (
    Standin(
        "flash_attn",
        "flash_attn_func, its packed and varlen variants, flash_attn_with_kvcache, bert_padding, rotary embeddings, "
        "norms and the cross entropy",
        ("flash_attn", "flash_attn_2_cuda"),
        ("flash-attn", "2.8.4"),
    ),
    Standin(
        "vllm",
        "attention to paged caches, writes to caches, activations, norms, rotations and the choice of experts in "
        "torch.ops._C, _C_cache_ops and _moe_C",
        ("vllm._C", "vllm._moe_C"),
    ),
    Standin(
        "sgl_kernel",
        "norms, gated activations, rotations and the choice of experts",
        ("sgl_kernel",),
        ("sgl-kernel", "0.3.16"),
    ),
    Standin(
        "apex",
        "FusedAdam, FusedLAMB, FusedSGD, FusedAdagrad, FusedLayerNorm, FusedRMSNorm and kernels of amp_C",
        ("apex", "amp_C", "fused_layer_norm_cuda"),
        ("apex", "0.1"),
    ),
    Standin(
        "deepspeed",
        "what its builders of fused_adam, fused_lamb and cpu_adam load",
        tuple(_deepspeed.OPERATORS.values()),
    ),
    Standin(
        "fbgemm_gpu",
        "operators of torch.ops.fbgemm over jagged tensors, and tables of embeddings",
        ("fbgemm_gpu",),
        ("fbgemm-gpu", "1.9.0"),
    ),
    Standin(
        "xformers",
        "memory_efficient_attention and the masks of xformers.ops.fmha",
        ("xformers",),
        ("xformers", "0.0.33"),
    ),
    Standin(
        "causal_conv1d",
        "causal_conv1d_fn and causal_conv1d_update",
        ("causal_conv1d",),
        ("causal-conv1d", "1.5.2"),
        ("causal_conv1d_cuda",),
    ),
    Standin(
        "mamba_ssm",
        "selective_scan_fn, mamba_inner_fn and selective_state_update",
        ("mamba_ssm",),
        ("mamba-ssm", "1.2.2"),
        ("selective_scan_cuda",),
    ),
)


def chosen() -> tuple[Standin, ...]:
    """Return the stand-ins that ``HALSTREAM_TORCH_STANDINS`` asks for, all of them without it.

    Raises
    ------
    RedirectError
        If it names one that does not exist.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if text in ("", "1"):
        return STANDINS
    if text == "0":
        return ()
    names = [name.strip() for name in text.split(",")]
    known = {one.name for one in STANDINS}
    for name in names:
        if name.removeprefix("-") not in known:
            raise RedirectError(
                f"{VARIABLE} is {text!r}, and there is no stand-in {name!r}; give 0, or names of "
                f"{', '.join(sorted(known))}, each with a - in front of it to leave it out"
            )
    left_out = {name[1:] for name in names if name.startswith("-")}
    only = {name for name in names if not name.startswith("-")} or known
    return tuple(one for one in STANDINS if one.name in only - left_out)
