"""The boundary to the extension: who calls, in which interpreter, with which settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]


def test_a_call_belongs_to_its_thread_also_when_an_argument_runs_python(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        from halstream import _halstream

        hs.device_count()
        own = _halstream.pybuild_StreamOwn(0)
        taken, leave = threading.Event(), threading.Event()

        def call() -> None:
            _halstream.pybuild_StreamOwn(0)
            taken.set()
            leave.wait(10)  # a thread that has ended is forgotten

        class Ordinal:
            def __index__(self) -> int:
                threading.Thread(target=call).start()
                assert taken.wait(10)
                return 0

        try:
            assert _halstream.pybuild_StreamOwn(Ordinal()) == own
        finally:
            leave.set()
        """
    )
    assert done.returncode == 0, done.stderr


def test_functions_run_once_python_can_start_a_thread_again(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs

        start = threading.Thread.start

        def refuse(self):
            raise RuntimeError("can't start new thread")

        s, ran = hs.Stream(), []
        threading.Thread.start = refuse
        for call in (s.call, s.call_checked):
            try:
                call(ran.append, 0)
            except hs.HalError as exc:
                assert "can't start new thread" in str(exc) and "ulimit" in str(exc), exc
            else:
                raise SystemExit("a function was taken that nobody can run")
        assert s.query()
        threading.Thread.start = start
        s.call(ran.append, 1)
        s.synchronize(timeout=10)
        assert ran == [1]
        """
    )
    assert done.returncode == 0, done.stderr


def test_repr_works_in_a_forked_child(child: Child) -> None:
    done = child(
        """
        import os, sys, warnings
        import halstream as hs
        from halstream import cupy, mindspore, paddle, torch
        warnings.simplefilter("ignore")
        objects = [
            hs.Stream(), hs.Event(device=0), hs.Device(0), hs.empty(4), hs.testing.Gate(hs.Stream()),
            torch.Stream(), torch.cuda.Stream(), torch.cuda.Event(), torch.Event(), paddle.device.Stream(),
            paddle.device.Event(), mindspore.hal.Stream(), mindspore.hal.Event(), cupy.cuda.Stream(),
            cupy.cuda.Event(),
        ]
        before = [repr(one) for one in objects]
        pid = os.fork()
        if pid == 0:
            for one in objects:
                assert type(one).__name__ in repr(one) or repr(one) in before, repr(one)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HALSTREAM_SANITIZE", "yes"),
        ("HALSTREAM_LEAKS", "true"),
        ("HALSTREAM_STALL", "off"),
        ("HALSTREAM_STRICT", "on"),
    ],
)
def test_a_setting_that_is_not_understood_is_an_error_until_it_is_corrected(
    child: Child, variable: str, value: str
) -> None:
    done = child(
        f"""
        import os
        import halstream as hs
        for _ in range(3):
            try:
                hs.device_count()
            except hs.InvalidValueError as exc:
                assert str(exc).startswith("{variable} is '{value}'"), exc
            else:
                raise SystemExit("accepted")
        os.environ["{variable}"] = "0"
        assert hs.device_count() > 0
        """,
        env={variable: value},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("host-settings")
@pytest.mark.parametrize("variable", ["HALSTREAM_HOST_DEVICES", "HALSTREAM_HOST_ENGINES", "HALSTREAM_HOST_MEMORY"])
def test_a_setting_of_the_host_device_is_named_first(child: Child, variable: str) -> None:
    done = child(
        f"""
        import halstream as hs
        try:
            hs.device_count()
        except hs.InvalidValueError as exc:
            assert str(exc).startswith('{variable} is "many"'), exc
        else:
            raise SystemExit("accepted")
        """,
        env={variable: "many", "HALSTREAM_BACKEND": "auto"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("isolated", [False, True], ids=["legacy", "isolated"])
def test_a_subinterpreter_is_refused_by_name_and_disturbs_nothing(child: Child, isolated: bool) -> None:
    if sys.version_info >= (3, 13):
        make = f"import _interpreters as sub; one = sub.create({'isolated' if isolated else 'legacy'!r})"
        run = "failed = sub.run_string(one, PROGRAM)"
    else:
        make = f"import _xxsubinterpreters as sub; one = sub.create(isolated={isolated})"
        run = "failed = sub.run_string(one, PROGRAM)"
    done = child(
        f"""
        import warnings
        warnings.simplefilter("ignore")
        import halstream as hs
        s, ran = hs.Stream(), []
        s.call(ran.append, 1)
        PROGRAM = "\\n".join([
            "try:",
            "    import halstream",
            "except ImportError as exc:",
            "    assert 'subinterpreters' in str(exc), exc",
            "else:",
            "    raise SystemError('halstream was imported')",
        ])
        {make}
        {run}
        assert not failed, failed
        sub.destroy(one)
        s.call(ran.append, 2)
        s.synchronize(timeout=10)
        assert ran == [1, 2]
        """
    )
    assert done.returncode == 0, done.stderr


def test_functions_run_after_the_package_was_imported_again(child: Child) -> None:
    done = child(
        """
        import importlib, sys, threading
        import halstream as hs
        first, ran = hs.Stream(), []
        first.call(ran.append, 1)
        first.synchronize(timeout=10)
        for name in [name for name in sys.modules if name.partition(".")[0] == "halstream"]:
            del sys.modules[name]
        again = importlib.import_module("halstream")
        assert again is not hs
        # Each waits for all, so that the threads of both copies must take one.
        met = threading.Barrier(6)
        streams = [again.Stream() for _ in range(6)]
        for one in streams:
            one.call(met.wait, 10)
            one.call(ran.append, 2)
        for one in streams:
            one.synchronize(timeout=10)
        first.call(ran.append, 3)
        first.synchronize(timeout=10)
        assert ran == [1] + [2] * 6 + [3], ran
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_leaving_a_sanitizer_that_was_not_entered_raises() -> None:
    import halstream as hs

    with pytest.raises(RuntimeError, match=r"with sanitize\(\)"):
        hs.sanitize().__exit__(None, None, None)


def test_a_function_after_the_end_of_the_main_thread_runs_or_reports_why_not(child: Child) -> None:
    # CPython 3.12.0 to 3.12.2 start no thread once the main thread has ended.
    done = child(
        """
        import threading
        import halstream as hs

        def late() -> None:
            threading.main_thread().join()
            s = hs.Stream()
            try:
                s.call(print, "ran", flush=True)
            except hs.HalError as exc:
                print("refused:", exc, flush=True)
            else:
                s.synchronize(timeout=10)

        threading.Thread(target=late).start()
        """
    )
    assert done.returncode == 0, done.stderr
    if (3, 12) <= sys.version_info < (3, 12, 3):
        assert done.stdout.startswith("refused: no thread could be started")
    else:
        assert done.stdout == "ran\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the size of the process is read from /proc")
def test_too_little_address_space_is_an_error_and_not_the_end_of_the_process(child: Child) -> None:
    done = child(
        """
        import resource
        import halstream as hs
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), before[1]))
        for _ in range(2):
            try:
                hs.device_count()
            except hs.OutOfMemoryError as exc:
                assert "ulimit -v" in str(exc), exc
            else:
                raise SystemExit("started")
        resource.setrlimit(resource.RLIMIT_AS, before)
        assert hs.device_count() > 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_too_few_threads_are_an_error_and_not_the_end_of_the_process(child: Child) -> None:
    done = child(
        """
        import _thread
        import halstream as hs
        start, started = _thread.start_new_thread, []

        def refuse(*args):
            if len(started) == 3:
                raise RuntimeError("can't start new thread")
            started.append(start(*args))

        _thread.start_new_thread = refuse
        try:
            hs.device_count()
        except hs.HalError as exc:
            assert "ulimit -u" in str(exc) and "3 more" in str(exc), exc
        else:
            raise SystemExit("started")
        _thread.start_new_thread = start
        assert hs.device_count() > 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_process_without_file_descriptors_goes_on(child: Child) -> None:
    """Go's runtime ends the process where its poller gets none, so it has to have them from the first stream on."""
    done = child(
        """
    import os
    import resource

    import halstream as hs

    s, taken = hs.Stream(), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    s.delay(0.001)  # a timer
    print(s.synchronize(timeout=10), bool(taken))
    for number in taken:
        os.close(number)
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "None True\n"
