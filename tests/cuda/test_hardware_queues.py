"""Which hardware queues the streams of a Python program are in."""

from __future__ import annotations

from cuda_help import Program


def test_L5_streams_that_were_dropped_leave_their_hardware_queues_to_later_ones(run_program: Program) -> None:
    """As long as few are open: no later stream is behind the held default stream."""
    run_program(
        """
        import halstream as hs
        from halstream.testing import Gate

        default = hs.Device(0).default_stream
        for n in range(1, 31):
            dropped = [hs.Stream(non_blocking=True) for _ in range(n)]
            for stream in dropped:
                stream.nop()
                stream.synchronize()
            del dropped, stream
            later = hs.Stream(non_blocking=True)
            gate = Gate(default)
            later.nop()
            try:
                later.synchronize(timeout=5)
            finally:
                gate.open()
            default.synchronize()
        """,
        FAKECUDA_PROFILE="silicon",
    )
