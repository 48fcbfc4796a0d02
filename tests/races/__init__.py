"""Programs of the real torch after public bug reports about streams, each with a repaired twin.

Each module is one report, reduced to a small program: its docstring names the project and the number of the issue
or pull request, says what happened, and which two accesses must be found. `broken` is the program as it was,
`fixed` its twin with the missing line; both check their own result.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

__all__ = ["MODES", "PATTERNS", "RACES", "Race"]

#: The ways of running a program under the sanitizer: in the order of the calls, on real threads, and in the order of
#: the calls with the pages of memory watched.
MODES = ("fifo", "threads", "pages")

_ALWAYS = MODES
_BY_PAGES = ("pages",)

#: What is wrong, by the name under which `RACES` lists it.
PATTERNS = {
    "no wait": "one stream uses what another one works on, and nothing orders them",
    "wrong stream": "a wait, but for another stream than the one that works",
    "itself": "`current_stream()` inside the block of the stream that should wait, or be recorded",
    "early event": "an event, or a wait for a stream, before the last work that it should cover",
    "record_stream": "memory freed on its own stream while another one uses it",
    "pinned refill": "the host writes to pinned memory that a copy still reads",
    "graph output": "the next replay overwrites what another stream still reads",
    "early read": "the host reads what a copy to it has not brought yet",
    "cached stream": "a stream that was asked for, or made, at construction",
    "resize_(0)": "the storage given back by `resize_(0)` while another stream uses it",
    "hook": "a hook of the backward pass, and the stream that it runs on",
    "allocation": "memory that one stream allocates and another one writes first",
}


class Race(NamedTuple):
    """A program of this package.

    Attributes
    ----------
    name : str
        Of the module.
    project : str
        Owner and repository of the report.
    number : int
        Of its issue or pull request.
    pattern : str
        A key of `PATTERNS`.
    modes : tuple of str
        The `MODES` in which `broken` must be reported.
    missed : str
        Why it is not in the others.
    """

    name: str
    project: str
    number: int
    pattern: str
    modes: tuple[str, ...] = _ALWAYS
    missed: str = ""

    def load(self) -> ModuleType:
        """Return the module; torch must be redirected before."""
        return importlib.import_module(f"{__name__}.{self.name}")

    def broken(self) -> None:
        """Run the program as it was."""
        self.load().broken()

    def fixed(self) -> None:
        """Run its repaired twin."""
        self.load().fixed()


_VIEW = "torch does not see what the host does through a NumPy view"

RACES: tuple[Race, ...] = (
    Race("comfyui_10697", "Comfy-Org/ComfyUI", 10697, "no wait"),
    Race("deepspeed_5606", "deepspeedai/DeepSpeed", 5606, "no wait"),
    Race("diffusers_13502", "huggingface/diffusers", 13502, "no wait"),
    Race("flaggems_5901", "flagos-ai/FlagGems", 5901, "no wait"),
    Race("megatron_bridge_1706", "NVIDIA-NeMo/Megatron-Bridge", 1706, "no wait"),
    Race("megatron_lm_7398", "NVIDIA/Megatron-LM", 7398, "no wait"),
    Race("nnsight_638", "ndif-team/nnsight", 638, "no wait"),
    Race("pytorch_144535", "pytorch/pytorch", 144535, "no wait"),
    Race("pytorch_192141", "pytorch/pytorch", 192141, "no wait"),
    Race("sglang_18746", "sgl-project/sglang", 18746, "no wait"),
    Race("sglang_20611", "sgl-project/sglang", 20611, "no wait"),
    Race("sglang_26380", "sgl-project/sglang", 26380, "no wait"),
    Race("sglang_36738", "sgl-project/sglang", 36738, "no wait"),
    Race("stable_audio_3_80", "Stability-AI/stable-audio-3", 80, "no wait"),
    Race("tensorrt_llm_6425", "NVIDIA/TensorRT-LLM", 6425, "no wait"),
    Race("torchrec_4191", "meta-pytorch/torchrec", 4191, "no wait"),
    Race("vllm_28430", "vllm-project/vllm", 28430, "no wait"),
    Race("vllm_45704", "vllm-project/vllm", 45704, "no wait"),
    Race("vllm_47282", "vllm-project/vllm", 47282, "no wait"),
    Race("cudnn_frontend_483", "NVIDIA/cudnn-frontend", 483, "wrong stream"),
    Race("deepspeed_7898", "deepspeedai/DeepSpeed", 7898, "wrong stream"),
    Race("deepspeed_8061", "deepspeedai/DeepSpeed", 8061, "wrong stream"),
    Race("megatron_lm_3140", "NVIDIA/Megatron-LM", 3140, "wrong stream"),
    Race("diffusers_12673", "huggingface/diffusers", 12673, "itself"),
    Race("torchtitan_2581", "pytorch/torchtitan", 2581, "itself"),
    Race("onetrainer_1306", "Nerogar/OneTrainer", 1306, "early event"),
    Race("trl_7195_late_clone", "huggingface/trl", 7195, "early event"),
    Race("comfyui_10501", "Comfy-Org/ComfyUI", 10501, "record_stream"),
    Race("deepspeed_7965", "deepspeedai/DeepSpeed", 7965, "record_stream"),
    Race("diffusers_14657", "huggingface/diffusers", 14657, "record_stream"),
    Race("megatron_lm_6187", "NVIDIA/Megatron-LM", 6187, "record_stream"),
    Race("pytorch_180665", "pytorch/pytorch", 180665, "record_stream"),
    Race("pytorch_image_models_2784", "huggingface/pytorch-image-models", 2784, "record_stream"),
    Race("tensorrt_llm_15265", "NVIDIA/TensorRT-LLM", 15265, "record_stream"),
    Race("torchtune_1867", "meta-pytorch/torchtune", 1867, "record_stream"),
    Race("vllm_24527", "vllm-project/vllm", 24527, "pinned refill"),
    Race("vllm_25279", "vllm-project/vllm", 25279, "pinned refill", _BY_PAGES, _VIEW),
    Race("vllm_29288", "vllm-project/vllm", 29288, "pinned refill"),
    Race("vllm_31841", "vllm-project/vllm", 31841, "pinned refill"),
    Race("sglang_omni_1369", "sgl-project/sglang-omni", 1369, "graph output"),
    Race("deepspeed_501", "deepspeedai/DeepSpeed", 501, "early read"),
    Race("pytorch_180666", "pytorch/pytorch", 180666, "early read"),
    Race("pytorch_86264", "pytorch/pytorch", 86264, "early read"),
    Race("vllm_31584", "vllm-project/vllm", 31584, "early read"),
    Race("vllm_36013", "vllm-project/vllm", 36013, "early read", _BY_PAGES, _VIEW),
    Race("torchrec_3306", "meta-pytorch/torchrec", 3306, "cached stream"),
    Race("trl_7195_cached_stream", "huggingface/trl", 7195, "cached stream"),
    Race("pytorch_91096", "pytorch/pytorch", 91096, "resize_(0)"),
    Race("torchrec_4231", "meta-pytorch/torchrec", 4231, "resize_(0)"),
    Race("ao_584", "pytorch/ao", 584, "hook"),
    Race("megatron_lm_3670", "NVIDIA/Megatron-LM", 3670, "hook"),
    Race("atom_1956", "ROCm/ATOM", 1956, "allocation"),
    Race("deepep_589", "deepseek-ai/DeepEP", 589, "allocation"),
)
