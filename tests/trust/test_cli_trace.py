"""``halstream trace``: the script runs as ever, and its trace tells what its streams did."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from perfetto_help import read

Hide = Callable[..., dict[str, str]]

PROGRAM = """
    import sys
    import halstream as hs
    from halstream.testing import Gate

    copies, compute = hs.Stream(), hs.Stream()
    source, buffer = hs.pinned_empty(1000, "u1"), hs.empty(1000, "u1")
    with Gate(copies):
        for i in range(3):
            buffer.copy_from(source, copies)
            compute.wait(copies.record())
            compute.call(len, buffer, reads=[buffer])
    compute.synchronize()
    print("done", sys.argv[1:])
    """


@pytest.mark.needs("times")
def test_a_program_becomes_a_trace(cli: Any) -> None:
    cli.script(PROGRAM)
    done = cli("trace", "prog.py", "-v", "x y", "-o", "out.pftrace")
    assert (done.returncode, done.stdout) == (0, "done ['-v', 'x y']\n")
    assert "13 operations" in done.stderr and "out.pftrace" in done.stderr
    trace = read(cli.folder / "out.pftrace")
    tracks = {name for name in trace.groups if " / " in name}
    assert tracks == {"device 0 / stream 1", "device 0 / stream 2"}
    copies, compute = (trace.on(name) for name in sorted(tracks))
    assert [s.name for s in copies if s.category == "stream"] == [
        "gate", "copy", "record event 1", "copy", "record event 2", "copy", "record event 3"
    ]  # fmt: skip
    records = [s.args["id"] for s in copies if s.args.get("kind") == "record"]
    waits = [s.args["id"] for s in compute if s.args.get("kind") == "wait"]
    assert trace.edges() == set(zip(records, waits, strict=True)), "a flow from each record to its wait, and no other"
    assert compute[0].name == "blocked: waits for event 1"
    assert {s.name for s in trace.of("memory")} == {"1000 bytes"} and len(trace.of("memory")) == 2
    assert {s.place[0] for s in copies + compute if s.place} == {"prog.py"}
    assert "synchronize stream" in {s.name for s in trace.on("thread 1")}
    assert all(s.end < math.inf for s in copies + compute)


@pytest.mark.needs("times")
def test_times_are_those_of_the_clock(cli: Any) -> None:
    cli.script(
        """
        import time
        import halstream as hs
        from halstream.testing import Gate

        stream = hs.Stream()
        times = [time.monotonic_ns()]
        stream.synchronize()
        times.append(time.monotonic_ns())
        time.sleep(0.2)  # orders nothing: only makes the distance large
        times.append(time.monotonic_ns())
        with Gate(stream):
            stream.call(len, ())
            time.sleep(0.05)
        stream.synchronize()
        times.append(time.monotonic_ns())
        print(*times)
        """
    )
    done = cli("trace", "prog.py")
    before, after, again, end = map(int, done.stdout.split())
    trace = read(cli.folder / "prog.pftrace")
    first, second = (s.begin for s in trace.on("thread 1") if s.name == "synchronize stream")
    assert again - after <= second - first <= end - before
    work = trace.on("device 0 / stream 1")
    assert [s.name for s in work if s.name != "blocked: waits for its turn"][-1] == "call"
    for slice in work:  # the first synchronize was at `after` or earlier
        assert again - after <= slice.begin - first <= end - before, slice.name


def test_the_trace_is_in_the_working_folder_under_the_scripts_name(cli: Any) -> None:
    (cli.folder / "sub").mkdir()
    cli.script("import halstream as hs; hs.Stream().nop()", "sub/job.py")
    assert cli("trace", "sub/job.py").returncode == 0
    assert len(read(cli.folder / "job.pftrace").of("stream")) == 1


def test_options_after_the_script_are_the_scripts_own(cli: Any) -> None:
    cli.script("import sys; print(sys.argv)")
    done = cli("trace", "--output", "a.pftrace", "prog.py", "--output", "b", "--help")
    assert (done.returncode, done.stdout) == (0, "['prog.py', '--output', 'b', '--help']\n")
    assert (cli.folder / "a.pftrace").exists() and not (cli.folder / "b").exists()


def test_a_program_that_uses_no_streams(cli: Any) -> None:
    cli.script("print(1)")
    assert cli("trace", "prog.py").returncode == 0
    assert read(cli.folder / "prog.pftrace").slices == []


def test_a_program_that_raises_is_traced_and_fails_as_ever(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs

        def work():
            hs.Stream().nop()
            raise ValueError("by the program")

        work()
        """
    )
    done = cli("trace", "prog.py")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert '"prog.py", line 8, in <module>' in lines[1], "no frames of what runs it"
    assert "ValueError: by the program" in lines
    assert [s.name for s in read(cli.folder / "prog.pftrace").of("stream")] == ["nop"]


@pytest.mark.parametrize(
    ("argument", "code", "text"),
    [("3", 3, ""), ("None", 0, ""), ("'no luck'", 1, "no luck\n"), ("True", 1, ""), ("256", 0, "")],
)
def test_the_exit_code_is_the_scripts(cli: Any, argument: str, code: int, text: str) -> None:
    cli.script(f"import halstream as hs, sys; hs.Stream().nop(); sys.exit({argument})")
    done = cli("trace", "prog.py")
    assert done.returncode == code and done.stderr.startswith(text)
    assert len(read(cli.folder / "prog.pftrace").of("stream")) == 1


def test_a_script_that_does_not_compile(cli: Any) -> None:
    cli.script("def :")
    done = cli("trace", "prog.py")
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["nowhere/out.pftrace", "folder"])
def test_where_a_trace_cannot_be_written_nothing_runs(cli: Any, place: str) -> None:
    (cli.folder / "folder").mkdir()
    cli.script("open('ran', 'w')")
    done = cli("trace", "prog.py", "-o", place)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"halstream: the trace cannot be written to {place}: ")
    assert not (cli.folder / "ran").exists()


@pytest.mark.parametrize(("end", "code"), [("0", 2), ("3", 3)])
def test_a_full_disk_is_reported_after_the_script(cli: Any, end: str, code: int) -> None:
    if not Path("/dev/full").exists():
        pytest.fail("this test needs /dev/full, which every Linux has")
    cli.script(f"import halstream as hs, sys; hs.Stream().nop(); print('ran'); sys.exit({end})")
    done = cli("trace", "-o", "/dev/full", "prog.py")
    assert (done.returncode, done.stdout) == (code, "ran\n")
    (line,) = done.stderr.splitlines()
    assert "the script has run, but its trace cannot be written to /dev/full" in line


def test_an_older_trace_stays_until_the_new_one_is_there(cli: Any) -> None:
    cli.script("import halstream as hs; hs.Stream().nop(); print(len(open('x.pftrace').read()))")
    (cli.folder / "x.pftrace").write_text("z" * 100_000)
    assert cli("trace", "prog.py", "-o", "x.pftrace").stdout == "100000\n"
    assert len(read(cli.folder / "x.pftrace").of("stream")) == 1


def test_without_perfetto_nothing_runs(cli: Any, hide: Hide) -> None:
    cli.script("print('ran')")
    done = cli("trace", "prog.py", env=hide("perfetto"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'halstream[cli]'" in done.stderr


def test_the_script_is_main_with_its_own_path(cli: Any) -> None:
    (cli.folder / "sub").mkdir()
    cli.script("VALUE = 5", "sub/beside.py")
    cli.script(
        """
        import os, sys, beside
        print(__name__, __file__, sys.argv, beside.VALUE, os.path.basename(sys.path[0]), sys.modules["__main__"].VALUE)
        """.replace("import os", "VALUE = 6; import os"),
        "sub/prog.py",
    )
    done = cli("trace", "sub/prog.py", "a")
    assert (done.returncode, done.stdout) == (0, "__main__ sub/prog.py ['sub/prog.py', 'a'] 5 sub 6\n"), done.stderr


def test_a_script_chooses_its_backend_and_devices_itself(cli: Any) -> None:
    cli.script(
        """
        import os
        os.environ["HALSTREAM_BACKEND"] = "host"
        os.environ["HALSTREAM_HOST_DEVICES"] = "4"
        import halstream as hs
        hs.Stream(3).nop()
        hs.Device(3).synchronize(10)
        """
    )
    assert cli("trace", "prog.py").returncode == 0
    assert [s.track for s in read(cli.folder / "prog.pftrace").of("stream")] == ["device 3 / stream 1"]


@pytest.mark.parametrize("before", ["", "hs.device_count()"], ids=["at first", "later"])
def test_what_happens_on_another_backend_is_traced_too(cli: Any, before: str) -> None:
    cli.script(
        f"""
        import halstream as hs
        {before}
        hs.use_backend("host")
        s = hs.Stream()
        s.nop()
        s.synchronize(10)
        """
    )
    done = cli("trace", "prog.py")
    assert done.returncode == 0, done.stderr
    assert len(read(cli.folder / "prog.pftrace").of("stream")) == 1


def test_work_and_threads_that_outlive_the_script_are_in_the_trace(cli: Any) -> None:
    cli.script(
        """
        import threading
        import halstream as hs
        s, go = hs.Stream(), threading.Event()

        def late():
            go.wait(10)
            for _ in range(50):
                s.call(len, ())

        threading.Thread(target=late).start()
        go.set()
        """
    )
    assert cli("trace", "prog.py").returncode == 0
    calls = read(cli.folder / "prog.pftrace").of("stream")
    assert [s.name for s in calls] == ["call"] * 50
    assert all(s.end < math.inf for s in calls)


def test_ctrl_c_ends_the_script_and_the_trace_is_there(cli: Any) -> None:
    cli.script(
        """
        import time
        import halstream as hs
        hs.Stream().nop()
        print("ready", flush=True)
        for _ in range(600):  # Python sees a signal that comes just before a wait only after it
            time.sleep(0.1)  # not Event.wait, which a signal may end with a RuntimeError about its lock
        """
    )
    process = cli.start("trace", "prog.py")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "KeyboardInterrupt" in errors
    assert len(read(cli.folder / "prog.pftrace").of("stream")) == 1


def test_processes_that_the_script_starts_work(cli: Any) -> None:
    cli.script(
        """
        import multiprocessing
        import halstream as hs

        def work(n):
            s, ran = hs.Stream(), []
            s.call(ran.append, n)
            s.synchronize(timeout=10)
            return ran

        if __name__ == "__main__":
            hs.Stream().nop()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
        """
    )
    done = cli("trace", "prog.py")
    assert (done.returncode, done.stdout) == (0, "[[1], [2]]\n"), done.stderr
    assert len(read(cli.folder / "prog.pftrace").of("stream")) == 1


def test_a_fork_before_the_first_use_is_fine(cli: Any) -> None:
    cli.script(
        """
        import os, sys
        import halstream as hs
        pid = os.fork()
        s, ran = hs.Stream(), []
        s.call(ran.append, 1)
        s.synchronize(timeout=10)
        assert ran == [1]
        if pid == 0:
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    done = cli("trace", "prog.py")
    assert done.returncode == 0, done.stderr
    assert len(read(cli.folder / "prog.pftrace").of("stream")) == 1
