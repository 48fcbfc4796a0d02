"""Stand-ins for packages whose compiled CUDA part is not there, under the redirected torch.

A program that imports `flash_attn`, `apex` or `vllm._C` finds modules with the same names and
signatures, which compute on torch's own operators: in the order of the streams, with accesses that
the sanitizer sees. They are served while torch is redirected, only where the real module is not
installed or cannot be loaded, and each says so once on stderr. ``_packages`` is the tree of them,
laid out as the real packages are; ``_registry`` lists what of it is served.
"""

from __future__ import annotations

__all__: list[str] = []
