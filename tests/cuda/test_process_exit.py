"""The end of a process: a driver unmaps pinned memory while threads of the runtime may still run."""

from __future__ import annotations

import pytest
from cuda_help import Program


@pytest.mark.parametrize("end", ["sys.exit()", "ctypes.CDLL(None).exit(0)"])
def test_L6_a_process_ends_with_a_function_pending_for_which_pinned_memory_is_polled(
    end: str, run_program: Program
) -> None:
    """C's exit does not wait for Python, which closes the runtime: then its threads run to the end."""
    done = run_program(
        f"""
        import ctypes, sys
        import halstream as hs
        s, t = hs.Stream(), hs.Stream()
        gate = hs.testing.Gate(s)
        t.wait(s.record())
        t.call(print, "never")
        print("end", flush=True)
        {end}
        """,
        FAKECUDA_EXIT="1",
    )
    assert done.stdout.split() == ["end"]
