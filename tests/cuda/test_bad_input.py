"""Streams, programs and processes that cannot be: each is a named error that says what to do."""

from __future__ import annotations

from cuda_help import Program


def test_a_stream_that_its_owner_destroyed(run_program: Program) -> None:
    run_program(
        """
        import gc
        import halstream as hs
        from look_alike import Driver, error
        driver = Driver()
        hs.backend()
        handle = driver.stream()
        s = hs.Stream.from_handle(handle)
        event = s.record()
        s.synchronize(timeout=10)
        t, ran, x = hs.Stream(), [], hs.zeros(4)  # now: the next stream may get the number again
        streams = driver.live()["streams"]
        driver.destroy(handle)
        calls = [
            s.query, s.synchronize, s.record, s.nop, lambda: s.wait(event), lambda: s.call(int),
            lambda: hs.testing.Gate(s), lambda: t.wait_stream(s), lambda: x.fill(1, s),
        ]
        for call in calls:
            exc = error(call)
            assert type(exc) is hs.InvalidHandleError and exc.code == 400 and "owner" in str(exc), repr(exc)
        s.describe()
        exc = error(hs.Stream.from_handle, handle + (1 << 20))
        assert type(exc) is hs.InvalidHandleError and "owner" in str(exc) and hex(handle + (1 << 20)) in str(exc), exc
        # The device is not lost, and its streams go on.
        t.call(ran.append, 1)
        t.synchronize(timeout=10)
        hs.synchronize(timeout=10)
        assert ran == [1]
        del s, calls
        gc.collect()
        hs.Event().close()
        assert driver.live()["streams"] == streams - 1, driver.live()  # all but that of the owner
        """
    )


def test_a_stream_of_another_device(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs
        from look_alike import Driver, error
        driver = Driver()
        hs.backend()
        handle = driver.stream(1)
        s = hs.Stream.from_handle(handle, 0)  # a handle tells its device itself
        assert s.device == hs.Device(1)
        s.call(int)
        s.synchronize(timeout=10)
        far = hs.zeros(8, device=1, stream=s)
        far.fill(1.0, s)
        assert (far.numpy(s) == 1).all()
        mine = hs.Stream(1)
        assert hs.Stream.from_handle(mine.handle, 0) == mine
        for wrong in (-1, 2**64, 2**70):
            try:
                hs.Stream.from_handle(wrong)
            except (hs.HalError, ValueError, OverflowError) as exc:
                assert str(wrong) in str(exc) or hex(wrong % 2**64) in str(exc), exc
            else:
                raise AssertionError(wrong)
        """
    )


def test_programs_that_no_device_can_run(run_program: Program) -> None:
    run_program(
        """
        import numpy as np
        import halstream as hs
        from look_alike import PTX, Driver, error
        s, x = hs.Stream(), hs.zeros(64, np.float32)

        def launch(cuda, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n", block=1, *args):
            return error(s.launch, hs.Kernel(cuda, name=name, signature=signature), 1, block, *(args or (x, 2.0, 64)))

        exc = launch(b"\\x7fELF" + b"sm_10" * 20)
        assert exc.code == 209 and "architecture" in str(exc) and "sm_90" in str(exc), exc
        exc = launch(PTX.replace("ret;", "syntax_error_here"))
        assert type(exc) is hs.CompileError and exc.code == 218, repr(exc)
        assert "syntax error" in exc.log and "line 5" in exc.log and "syntax error" in str(exc), exc.log
        exc = launch(PTX.replace(".version 6.0", ".version 99.0"))
        assert exc.code == 222 and "update" in str(exc), exc
        exc = launch(PTX, "nope")
        assert exc.code == 500 and "'nope'" in str(exc) and "fill_u32, scale_f32, fault" in str(exc), exc
        exc = launch(b"\\x50\\xed\\x55\\xba" + bytes(64))
        assert exc.code in (200, 209, 218) and "scale_f32" in str(exc), repr(exc)

        # Launches that a device would refuse, or worse, would not.
        wrong = hs.KernelArgumentError
        far = hs.zeros(64, np.float32, device=1)
        cases = [
            ((1025,), (x, 2.0, 64), wrong), (((512, 4),), (x, 2.0, 64), wrong), ((0,), (x, 2.0, 64), wrong),
            ((8,), (x, 2.0), wrong), ((8,), (x, 2.0, 64, 1), wrong), ((8,), (x, "2", 64), wrong),
            ((8,), (x, 2.0, -1), wrong), ((8,), (x, 2.0, 2**32), wrong), ((8,), (x, 2.0, 1.5), wrong),
            ((8,), (hs.zeros(64, np.float64), 2.0, 64), wrong), ((8,), (np.zeros(64, np.float32), 2.0, 64), wrong),
            ((8,), (x.ptr, 2.0, 64), wrong), ((8,), (far, 2.0, 64), hs.WrongDeviceError),
        ]
        before = Driver().count("cuLaunchKernel")
        for (block,), args, kind in cases:
            kernel = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
            exc = error(s.launch, kernel, 1, block, *args)
            assert type(exc) is kind, (block, args, repr(exc))
        assert Driver().count("cuLaunchKernel") == before
        s.synchronize(timeout=10)
        assert (x.numpy(s) == 0).all()
        """
    )


def test_a_forked_child_gets_an_error_and_the_parent_keeps_working(run_program: Program) -> None:
    run_program(
        """
        import os, sys, warnings
        import numpy as np
        import halstream as hs
        from look_alike import Driver
        warnings.simplefilter("ignore")
        s, x = hs.Stream(), hs.zeros(8)
        gate = hs.testing.Gate(s)
        ran = []
        s.call(ran.append, 1)
        driver = Driver()
        before = driver.count("total")
        pid = os.fork()
        if pid == 0:
            texts = set()
            for call in (hs.Stream, s.query, s.synchronize, s.record, lambda: s.call(int), lambda: x.fill(1.0),
                         lambda: hs.empty(4), hs.synchronize, hs.device_count, lambda: hs.use_backend("cuda")):
                try:
                    call()
                except hs.ForkError as exc:
                    texts.add("spawn" in str(exc))
                else:
                    os._exit(2)
            if driver.count("total") != before:
                os._exit(4)
            del x
            sys.exit(0 if texts == {True} else 3)  # its finalizers run, and do no harm
        _, status = os.waitpid(pid, 0)
        gate.open()
        s.synchronize(timeout=10)
        assert ran == [1]
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )


def test_another_backend_leaves_nothing_of_this_one(run_program: Program) -> None:
    run_program(
        """
        import gc, threading
        import numpy as np
        import halstream as hs
        from look_alike import PTX, Driver, error
        driver = Driver()

        def work():
            s, t = hs.Stream(), hs.Stream(1)
            x, far = hs.asarray(np.arange(5000.0, dtype=np.float32)), hs.zeros(5000, np.float32, device=1)
            kernel = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
            s.launch(kernel, 1, 64, x, 2.0, 64)
            s.delay(0.0001)
            t.wait_stream(s)
            far.copy_from(x.numpy(s), t)
            pinned = hs.pinned_empty(100)
            for stream in (s, t):
                stream.call(int)
                event = hs.Event(timing=True)
                event.record(stream)
                event.synchronize(timeout=10)
            thread = threading.Thread(target=lambda: hs.Device(0).per_thread_stream.call(int))
            thread.start()
            thread.join()
            with s:
                hs.Event().record()
            hs.Device(0).default_stream.synchronize(timeout=10)
            hs.synchronize(0, timeout=10)
            hs.synchronize(1, timeout=10)

        for _ in range(4):
            assert hs.use_backend("cuda") == "cuda"
            work()
            gc.collect()
            assert driver.live()["contexts"] == 2
            assert hs.use_backend("host") == "host"
            assert driver.live() == {}, driver.live()
            s, ran = hs.Stream(), []
            s.call(ran.append, 1)
            s.synchronize(timeout=10)
            s.close()
            assert ran == [1]
        # While there is something alive it is refused, and nothing is lost.
        hs.use_backend("cuda")
        s = hs.Stream()
        assert "alive" in str(error(hs.use_backend, "host"))
        s.call(ran.append, 2)
        s.synchronize(timeout=10)
        assert ran == [1, 2]
        """,
        HALSTREAM_BACKEND="host",
    )


def test_a_thread_that_ended_on_another_backend_starts_nothing_again(run_program: Program) -> None:
    run_program(
        """
        import threading
        import halstream as hs
        from look_alike import Driver

        def run(function):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()

        driver = Driver()
        hs.backend()
        run(lambda: (hs.Device(0).per_thread_stream.nop(), hs.Device(1).per_thread_stream.call(int)))
        hs.synchronize(0, timeout=10)
        hs.synchronize(1, timeout=10)
        assert hs.use_backend("host") == "host"
        assert driver.live() == {}, driver.live()
        before = driver.count("total")
        for _ in range(3):  # each looks after those that ended
            run(lambda: hs.Stream().synchronize())
        assert driver.live() == {} and driver.count("total") == before, driver.live()
        """
    )
