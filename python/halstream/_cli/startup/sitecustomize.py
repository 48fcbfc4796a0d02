"""Python imports this at the start of each process that a program under `halstream run --torch` or `--paddle` starts.

The processes of torch.distributed.run and of torch.multiprocessing are programs of torch, too: their torch is
redirected when they import it, and so it is with Paddle. A sitecustomize of the user's is executed as well.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _chain() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_chain()

if os.environ.get("HALSTREAM_TORCH"):
    try:
        from halstream._cli.started import watch_for_torch
    except ImportError:  # another Python, without halstream
        pass
    else:
        watch_for_torch()

if os.environ.get("HALSTREAM_PADDLE"):
    try:
        from halstream._cli.started import watch_for_paddle
    except ImportError:
        pass
    else:
        watch_for_paddle()
