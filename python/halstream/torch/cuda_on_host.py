"""Importing this module redirects the real torch's CUDA device to halstream's host device; see `redirect`.

Write it as the first line of a program that is written for ``torch.cuda``::

    import halstream.torch.cuda_on_host
    import torch
"""

from __future__ import annotations

from ._redirect.redirection import redirect

__all__: list[str] = []

redirect()
