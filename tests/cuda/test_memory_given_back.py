"""Memory of the device and of the driver: what is given back, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest
from cuda_help import Program

PATHS = [{}, {"FAKECUDA_POOLS": "0"}, {"FAKECUDA_VERSION": "11020", "FAKECUDA_POOLS": "0", "FAKECUDA_MEMOPS": "0"}]


@pytest.mark.parametrize("settings", PATHS)
def test_memory_that_is_given_up_under_pending_work(run_program: Program, settings: dict[str, Any]) -> None:
    run_program(
        """
        import gc
        import numpy as np
        import halstream as hs
        from halstream.testing import Gate
        s, t = hs.Stream(), hs.Stream()
        keep = hs.zeros(50_000, np.uint8)
        gate = Gate(s)
        for n in range(20):
            x = hs.empty(50_000, np.uint8)
            x.fill(n, s)
            y = hs.empty(50_000, np.uint8, stream=s)
            y.copy_from(x, s)
            pinned = hs.pinned_empty(50_000, np.uint8)
            pinned[:] = n
            y.copy_from(pinned, s)
            if n == 7:
                keep.copy_from(y, s)
            del x, y, pinned
            gc.collect()
            # Who allocates now gets none of what is still in use.
            z, p = hs.empty(50_000, np.uint8), hs.pinned_empty(50_000, np.uint8)
            p[:] = 255
            z.fill(255, t)
            t.synchronize(timeout=10)
        gate.open()
        s.synchronize(timeout=10)
        assert (keep.numpy(s) == 7).all(), keep.numpy(s)
        assert (z.numpy(t) == 255).all() and (p == 255).all()
        """,
        **settings,
    )


@pytest.mark.parametrize("settings", PATHS)
def test_out_of_memory_errors_have_figures(run_program: Program, settings: dict[str, Any]) -> None:
    run_program(
        """
        import gc
        import numpy as np
        import halstream as hs
        from halstream import _memory
        from look_alike import Driver, error
        total = 64 << 20
        blocks = []
        for _ in range(100):
            try:
                blocks.append(hs.empty(4 << 20, np.uint8))
            except hs.OutOfMemoryError as exc:
                text, code = str(exc), exc.code
                break
        assert code == 2 and "4194304 bytes" in text and str(total) in text and "free" in text, text
        assert hs.Device(0).name in text, text
        assert 10 <= len(blocks) <= 16, len(blocks)
        # The other device has its own, and this one works on.
        hs.empty(4 << 20, np.uint8, device=1).fill(1)
        blocks[0].fill(3)
        assert (blocks[0].numpy() == 3).all()
        del blocks[:]
        gc.collect()
        big = hs.empty(32 << 20, np.uint8)
        big.fill(4)
        hs.synchronize(timeout=10)
        del big
        gc.collect()
        # In stream order the same, with the pieces of another size given back first.
        s = hs.Stream()
        pieces = [hs.empty(1 << 20, np.uint8, stream=s) for _ in range(40)]
        del pieces
        gc.collect()
        s.synchronize(timeout=10)
        hs.empty(48 << 20, np.uint8, stream=s).fill(1, s)
        exc = error(hs.empty, 80 << 20, np.uint8, stream=s)
        assert type(exc) is hs.OutOfMemoryError and str(80 << 20) in str(exc) and str(total) in str(exc), exc
        s.synchronize(timeout=10)
        free, all_ = _memory.memory_info()
        assert all_ == total and free <= total
        """,
        FAKECUDA_MEMORY=str(64 << 20),
        **settings,
    )


def test_no_pinned_memory_left(run_program: Program) -> None:
    run_program(
        """
        import numpy as np
        import halstream as hs
        from look_alike import Driver, error
        n = 5 << 20  # more than is reserved
        driver, s, x = Driver(), hs.Stream(), hs.zeros(n, np.uint8)
        s.call(int)
        s.synchronize(timeout=10)
        driver.control("fault cuMemHostAlloc 0 2")
        exc = error(hs.pinned_empty, n, np.uint8)
        assert type(exc) is hs.OutOfMemoryError and exc.code == 2 and str(n) in str(exc), repr(exc)
        exc = error(x.copy_from, np.ones(2 * n, np.uint8)[:n], s)
        assert type(exc) is hs.OutOfMemoryError, repr(exc)
        driver.control("faults off")
        x.copy_from(np.ones(n, np.uint8), s)
        assert (x.numpy(s) == 1).all()
        """
    )


@pytest.mark.parametrize("function", ["cuEventCreate", "cuStreamCreateWithPriority", "cuMemAllocFromPoolAsync"])
def test_a_driver_without_room_loses_nothing(run_program: Program, function: str) -> None:
    run_program(
        f"""
        import gc
        import numpy as np
        import halstream as hs
        from look_alike import Driver, error
        driver, s = Driver(), hs.Stream()
        make = {{
            "cuEventCreate": lambda: [hs.Event() for _ in range(10)] and [hs.Event().record(s) for _ in range(10)]
                and hs.Stream().wait_event(s.record()),
            "cuStreamCreateWithPriority": hs.Stream,
            "cuMemAllocFromPoolAsync": lambda: hs.empty(77 << 10, np.uint8),
        }}[{function!r}]
        driver.control("fault {function} 0 2")
        events, made = [], []
        try:
            for _ in range(500):  # some events and streams are there already
                events.append(hs.Event())
                events[-1].record(s)
                made.append(make())
        except hs.OutOfMemoryError as exc:
            assert exc.code == 2 and "free memory" in str(exc), exc
        else:
            raise AssertionError
        driver.control("faults off")
        make()
        s.call(int)
        s.synchronize(timeout=10)
        events.clear()
        made.clear()
        gc.collect()
        s.close()
        gc.collect()
        hs.use_backend("host")
        assert driver.live() == {{}}, driver.live()
        """
    )


def test_a_thousand_rounds_leave_no_objects_and_make_few(run_program: Program) -> None:
    run_program(
        """
        import gc
        import numpy as np
        import halstream as hs
        from look_alike import Driver
        driver, s, t = Driver(), hs.Stream(), hs.Stream()

        def rounds(n):
            for _ in range(n):
                event, other = hs.Event(), hs.Event(timing=True)
                event.record(s)
                other.record(t)
                t.wait_event(event)
                s.wait_event(other)
                s.wait_stream(t)
                assert s.record() is not None
                u = hs.Stream()
                u.wait_event(event)
                u.nop()
                u.synchronize(timeout=10)
                event.close()
                other.close()
                u.close()
            hs.synchronize(timeout=10)
            gc.collect()

        rounds(50)
        before, made = driver.live(), driver.count("cuEventCreate")
        rounds(1000)
        after = driver.live()
        assert driver.count("cuEventCreate") - made < 100, driver.count("cuEventCreate") - made
        assert after.pop("events") - before.pop("events") < 100
        assert after == before, (before, after)
        # A thousand pending at once do not become a thousand kept for ever.
        with hs.testing.Gate(s):
            for _ in range(6000):
                hs.Event().record(s)
        s.synchronize(timeout=10)
        gc.collect()
        rounds(100)
        assert driver.live()["events"] < 4500, driver.live()
        """
    )


def test_a_record_without_an_event_makes_one_call_and_no_event(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs
        from look_alike import Driver
        driver, s = Driver(), hs.Stream()
        for _ in range(100):
            event = s.record()
            event.synchronize(timeout=10)
        counts = {name: driver.count(name) for name in ("cuEventCreate", "cuEventRecord", "cuEventDestroy_v2")}
        for _ in range(1000):
            event = s.record()
        assert driver.count("cuEventRecord") - counts["cuEventRecord"] == 1000
        assert driver.count("cuEventCreate") - counts["cuEventCreate"] <= 40  # the collector comes in rounds
        assert driver.count("cuEventDestroy_v2") == counts["cuEventDestroy_v2"]
        s.synchronize(timeout=10)
        """
    )


@pytest.mark.parametrize("settings", PATHS)
def test_functions_copies_and_kernels_leave_nothing(run_program: Program, settings: dict[str, Any]) -> None:
    run_program(
        """
        import gc
        import numpy as np
        import halstream as hs
        from look_alike import PTX, Driver
        driver, s = Driver(), hs.Stream()
        data, out = np.arange(3000, dtype=np.float32), np.empty(3000, np.float32)

        def rounds(n):
            for i in range(n):
                x = hs.asarray(data, stream=s)
                x.copy_to(out, s)
                y = hs.empty(3000, np.float32, stream=s)
                y.copy_from(x, s)
                s.call(int)
                with hs.testing.Gate(s):
                    s.delay(1e-6)
                p = hs.pinned_empty(500)
                kernel = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
                s.launch(kernel, 1, 8, y, 1.0, 8)
            s.synchronize(timeout=10)
            gc.collect()
            hs.Event().close()

        rounds(60)
        before = driver.live()
        rounds(300)
        after = driver.live()
        for kind in before:
            assert after[kind] <= before[kind] + 20, (before, after)
        s.close()
        del s
        gc.collect()
        hs.use_backend("host")
        assert driver.live() == {}, driver.live()
        """,
        **settings,
    )
