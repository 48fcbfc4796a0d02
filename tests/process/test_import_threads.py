"""First imports on several threads at once."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

PARTS = ("torch.cuda", "paddle", "mindspore", "cupy.cuda", "cuda.core", "cupyx", "acl", "testing")


@pytest.mark.parametrize("one", PARTS)
def test_two_threads_import_parts_of_the_package_at_the_same_time(child: Child, one: str) -> None:
    """Each waits for the other where both need the package itself: neither sees a part of it."""
    for other in itertools.islice(itertools.cycle(PARTS), PARTS.index(one) + 1, PARTS.index(one) + 4):
        done = child(
            f"""
    import collections.abc  # of which two threads may see a part in CPython 3.13.0
    import importlib
    import sys
    import threading

    sys.setswitchinterval(1e-5)
    both, wrong = threading.Barrier(2), []

    def load(name: str) -> None:
        both.wait(10)
        try:
            importlib.import_module("halstream." + name)
        except ImportError as exc:
            wrong.append(str(exc))

    threads = [threading.Thread(target=load, args=(name,)) for name in ({one!r}, {other!r})]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    print(wrong)
    """
        )
        assert done.stdout == "[]\n", done.stdout + done.stderr
