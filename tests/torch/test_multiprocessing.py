"""F40: tensors and events on a device between processes, by torch.multiprocessing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program with the redirected torch; it starts others by `spawn`."""

    def run(source: str, *options: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "app.py"
        file.write_text("import torch, torch.multiprocessing as mp\n" + textwrap.dedent(source))
        command = [sys.executable, "-m", "halstream", "run", "--torch", *options, str(file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)

    return run


SENDS = """
def receive(queue, answers):
    x, again, rest = queue.get(timeout=60)
    assert x.is_cuda and x.data_ptr() == again.data_ptr() and rest.storage_offset() == 4
    answers.put((x.tolist(), rest.tolist(), type(x).__name__))
    x.detach().add_(100)
    torch.cuda.synchronize()
    try:
        mp.reductions.reduce_tensor(x)
    except RuntimeError as error:
        answers.put(str(error).partition(";")[0])
    del x, again, rest
    torch.cuda.synchronize()
    answers.put("done")

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=receive, args=(queue, answers))
    process.start()
    x = torch.nn.Parameter(torch.arange(8.0, device="cuda"))
    queue.put((x, x, x.detach()[4:]))
    for _ in range(3):
        print(answers.get(timeout=60))
    process.join(60)
    print(process.exitcode, x.tolist())
    from halstream.torch._redirect import processes
    print(len(processes._sent))
    torch.cuda.ipc_collect()
    print(len(processes._sent))
"""


def test_F40_a_tensor_is_the_same_memory_in_both_processes(run: Run) -> None:
    done = run(SENDS)
    values = [float(i) for i in range(8)]
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str((values, values[4:], "Parameter")),
        "Attempted to send CUDA tensor received from another process",
        "done",
        f"0 {[value + 100 for value in values]}",
        "2",
        "0",
    ], done.stderr


WAITS = """
import halstream as hs

def receive(connection):
    event = torch.cuda.Event.from_ipc_handle("cuda", connection.recv())
    x = connection.recv()  # the stream waits for what the sender had enqueued
    y = x + 1
    connection.send((event.query(), torch.cuda.current_stream().query()))
    connection.recv()
    torch.cuda.synchronize()
    connection.send((event.query(), y.tolist()))
    own = torch.cuda.Stream()
    gate = hs.testing.Gate(hs.Stream.from_handle(own.cuda_stream))
    with torch.cuda.stream(own):
        x.fill_(9)
        event.record()
    connection.send(isinstance(event, torch.cuda.Event))
    connection.recv()  # the sender's stream waits
    gate.open()
    event.synchronize()
    connection.recv()

if __name__ == "__main__":
    context = mp.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=receive, args=(there,))
    process.start()
    x, s, event = torch.zeros(4, device="cuda"), torch.cuda.Stream(), torch.cuda.Event(interprocess=True)
    here.send(event.ipc_handle())
    mp.reductions.reduce_tensor(x)  # the memory is moved while nothing works on it
    gate = hs.testing.Gate(hs.Stream.from_handle(s.cuda_stream))
    with torch.cuda.stream(s):
        x.fill_(3)
        event.record()
        here.send(x)
    print(here.recv())
    gate.open()
    here.send("go on")
    print(here.recv(), here.recv())
    torch.cuda.current_stream().wait_event(event)
    y = x + 0
    print(event.query(), torch.cuda.current_stream().query())
    here.send("go on")
    print(y.tolist())
    here.send("end")
    process.join(60)
    print(process.exitcode)
"""


def test_F40_streams_wait_for_the_other_process(run: Run) -> None:
    done = run(WAITS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "(False, False)",
        "(True, [4.0, 4.0, 4.0, 4.0]) True",
        "False False",
        "[9.0, 9.0, 9.0, 9.0]",
        "0",
    ], done.stderr


REFUSED = """
def receive(queue, answers):
    try:
        answers.put(("got", queue.get(timeout=60)))
    except Exception as error:
        answers.put((type(error).__name__, str(error)))

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=receive, args=(queue, answers))
    process.start()
    queue.put([{"x": torch.ones(3, device="cuda")}])
    print(*answers.get(timeout=60), sep=": ")
    process.join(60)
    one, other = context.Pipe()
    try:
        one.send(torch.ones(2, device="cuda"))
    except RuntimeError as error:
        print(error)
"""


def test_F40_what_cannot_be_sent_raises_where_it_is_sent_or_received(run: Run) -> None:
    done = run(REFUSED, "--sanitize", "--pages")
    text = "the memory's pages are watched, which another process would not notice"
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("RuntimeError: a tensor could not be sent by a queue: ") and text in first
    assert text in second


POOL = """
def double(x):
    return x * 2

if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool:
        results = pool.map(double, [torch.full((1000,), float(i), device="cuda") for i in range(8)])
        print([result.is_cuda and result[999].item() for result in results])
        del results
"""


def test_F40_a_pool_of_processes_gets_and_returns_tensors(run: Run) -> None:
    done = run(POOL)
    assert (done.returncode, done.stdout) == (0, f"{[2.0 * i for i in range(8)]}\n"), done.stderr


CLASSES = """
event = torch.cuda.Event(interprocess=True)
assert type(event).__name__ == "Event" and isinstance(event, torch.cuda.Event) and not isinstance(event, int)
assert event.query() and event.cuda_event == 0 and event.device is None
with torch.cuda.device(1):
    handle = event.ipc_handle()  # one that was never recorded gets the current device
assert len(handle) == 64 and event.device == torch.device("cuda", 1)
x = torch.ones(4, device="cuda:1")
event.record(torch.cuda.current_stream(1))
event.wait(torch.cuda.current_stream(1))
event.synchronize()
assert event.query() and event.cuda_event
for call in (
    lambda: torch.cuda.Event.from_ipc_handle("cuda", handle),
    lambda: torch.cuda.Event.from_ipc_handle("cuda", bytes(64)),
    lambda: torch.cuda.Event().ipc_handle(),
    lambda: torch.cuda.Event(enable_timing=True, interprocess=True).record(),
    lambda: torch.cuda.Event.from_ipc_handle("cpu", handle),
    lambda: torch.cuda.Event.from_ipc_handle("cuda", b"short"),
):
    try:
        call()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""


def test_F40_an_event_for_other_processes_is_torchs_event(run: Run) -> None:
    done = run(CLASSES)
    assert done.returncode == 0, done.stderr
    texts = (
        "this process has made the handle",
        "no handle of an event",
        "made without interprocess=True",
        "cannot have timing",
        "can only be created on CUDA devices, but got device type cpu",
        "of size 64, but got 5",
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(texts), done.stdout
    assert all(text in line for text, line in zip(texts, lines, strict=True)), done.stdout
