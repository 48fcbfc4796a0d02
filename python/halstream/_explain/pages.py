"""The table of the pages: one for each kind of report, with three usual repairs and a small example."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["PAGES", "Page"]


class Page(NamedTuple):
    """What is said of one kind of report."""

    title: str  #: in a phrase
    what: str  #: what has happened, and what it does to a program
    repairs: tuple[str, str, str]  #: the usual ones, the most frequent first
    command: str  #: what shows it in the example, which is the file example.py
    example: str
    repaired: str  #: the example with one of the repairs, which the command does not report


_SANITIZE = "halstream run --sanitize example.py"

_UNORDERED = """
import halstream as hs

one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
x.fill(1, one)
x.fill(2, two)
hs.synchronize()
"""

_HOST = """
import halstream as hs

stream, x, host = hs.Stream(), hs.zeros(4), hs.pinned_empty(4)
x.copy_to(host, stream)
hs.host_access(host, "r")
print(host.sum())
"""

_DROPPED = """
import halstream as hs

main, side, host = hs.Stream(), hs.Stream(), hs.pinned_empty(4096)
x = hs.zeros(4096, stream=main)
side.wait(main.record())
x.copy_to(host, side)
del x  # the allocator may give the memory out again, in the order of main
y = hs.empty(4096, stream=main)
y.fill(2, main)
hs.synchronize()
"""

_REFILLED = """
import halstream as hs

stream, x, host = hs.Stream(), hs.empty(4), hs.pinned_empty(4)
host[:] = 1
x.copy_from(host, stream)
host[:] = 2
stream.synchronize()
"""

_UNKNOWN = """
import halstream as hs

stream, x, host = hs.Stream(), hs.empty(4), hs.pinned_empty(4)


def fill():
    host[:] = 1


host[:] = 0
stream.call(fill)
x.copy_from(host, stream)
stream.synchronize()
"""

_QUERIED = """
import halstream as hs

stream, x, host = hs.Stream(), hs.zeros(4), hs.pinned_empty(4)
x.copy_to(host, stream)
while not stream.query():
    pass
hs.host_access(host, "r")
print(host.sum())
"""

_TIMED = """
import threading
import halstream as hs

stream, host, done = hs.Stream(), hs.pinned_empty(4), []


def fill():
    hs.host_access(host, "w")
    host[:] = 1
    done.append(True)


thread = threading.Thread(target=fill)
thread.start()
while not done:
    pass
hs.host_access(host, "w")
host[:] = 2
thread.join()
"""

_BOUNDS = '''
import halstream as hs

source = r"""
extern "C" __global__ void ones(float *x, int n) { x[threadIdx.x] = 1; }"""
ones = hs.Kernel(source, name="ones", signature="out float32 *x, int32 n")
stream, x = hs.Stream(), hs.zeros(20, "f4")
stream.launch(ones, 1, 32, x, 20)
try:
    stream.synchronize()
except hs.DeviceLostError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
    hs.testing.recover()
'''

_SHARED = '''
import numpy as np
import halstream as hs

source = r"""
extern "C" __global__ void turn(float *x) {
    __shared__ float part[64];
    part[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = part[63 - threadIdx.x];
}"""
turn = hs.Kernel(source, name="turn", signature="inout float32 *x")
stream, x = hs.Stream(), hs.asarray(np.arange(64, dtype=np.float32))
stream.launch(turn, 1, 64, x)
stream.synchronize()
'''

_UNWRITTEN = '''
import halstream as hs

source = r"""
extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }"""
add = hs.Kernel(source, name="add", signature="inout float32 *x")
stream, x = hs.Stream(), hs.empty(32, "f4")
stream.launch(add, 1, 32, x)
stream.synchronize()
'''

_SPLIT = '''
import halstream as hs

source = r"""
extern "C" __global__ void half(float *x) {
    if (threadIdx.x < 16) {
        x[threadIdx.x] = 1;
        asm volatile("bar.sync 0;");
    } else {
        x[threadIdx.x] = 2;
        asm volatile("bar.sync 0;");
    }
}"""
half = hs.Kernel(source, name="half", signature="out float32 *x")
stream, x = hs.Stream(), hs.zeros(32, "f4")
stream.launch(half, 1, 32, x)
stream.synchronize()
'''

_NOBODY = """
import threading
import halstream as hs

stream, ready = hs.Stream(), threading.Event()
stream.call(ready.wait)
try:
    stream.synchronize()
except hs.StallError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
ready.set()
"""

_CIRCLE = """
import contextlib
import threading
import halstream as hs

stream, begun = hs.Stream(), threading.Event()


def wait():
    with contextlib.suppress(hs.StallError):
        stream.synchronize()


def finish():
    begun.wait()
    thread.join()


thread = threading.Thread(target=wait)
stream.call(finish)
thread.start()
begun.set()
try:
    stream.synchronize()
except hs.StallError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
thread.join()
"""

_LEFT = """
import halstream as hs

streams = [hs.Stream()]
streams[0].synchronize()
"""

_LOST = '''
import halstream as hs

source = r"""
extern "C" __global__ void stop() { asm("trap;"); }"""
stop = hs.Kernel(source, name="stop", signature="")
stream = hs.Stream()
stream.launch(stop, 1, 1)
try:
    stream.synchronize()
except hs.DeviceLostError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
    hs.testing.recover()
'''

_ASSERTION = """
import halstream as hs

stream, x = hs.Stream(), hs.zeros(4)


def check(values):
    assert values.sum() == 4, "not filled yet"


stream.call(check, x)
stream.synchronize()
"""

_SCHEDULE = """
import halstream as hs

one, two, seen = hs.Stream(), hs.Stream(), []
one.call(seen.append, 1)
two.call(seen.append, 2)
hs.synchronize()
assert sorted(seen) == seen
"""

_OPERATOR = """
import torch

theta = torch.eye(2, 3, device="cuda").expand(1, 2, 3)
try:
    torch.cudnn_affine_grid_generator(theta, 1, 1, 4, 4)
except NotImplementedError as error:
    print(error)
"""

_NAME = """
from halstream.torch import cuda

try:
    cuda.synchronise()
except AttributeError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
"""

_REFUSED = """
import halstream as hs

half = hs.Kernel(b"\\x7fELF", name="half", signature="")
try:
    hs.Stream().launch(half, 1, 32)
except hs.NotSupportedError as error:
    print(error, *getattr(error, "__notes__", ()), sep="\\n")
"""

_COMPILED = """
import torch

side = torch.cuda.Stream()


def step(x, waits=True):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x.sin()
    if waits:
        torch.cuda.current_stream().wait_stream(side)
    return y + 1


def forgetful(graph, inputs):  # a compiler that drops the last wait
    return lambda x: (step(x, waits=False),)


def test_step():
    torch.compile(step, backend=forgetful)(torch.ones(64, device="cuda"))
"""

#: The pages by their codes.
PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "unordered-access": Page(
            "two operations work on the same bytes, and nothing orders them",
            "Both operations touch the same memory, at least one of them writes, and no wait, event or stream order "
            "says which comes first. The program may be right in a thousand runs: the result is decided by how long "
            "the work in front of each takes. The report names both calls, why nothing orders them, and the line that "
            "would.",
            (
                "Let the second stream wait for the first before its operation: `two.wait(one.record())`, in torch "
                "`two.wait_stream(one)`. It is what the report suggests, and what `--fix=apply` tries.",
                "Put both operations on one stream, if they gain nothing from overlapping.",
                "If the operations work on parts that do not overlap, say so: `reads=` and `writes=` with slices, or "
                "`halstream.accesses`.",
            ),
            _SANITIZE,
            _UNORDERED,
            _UNORDERED.replace("x.fill(2", "two.wait(one.record())\nx.fill(2"),
        ),
        "host-too-early": Page(
            "the host works on memory that a stream still uses",
            "A call that enqueues work returns before the work is done. Here the host reads, changes or frees the "
            "memory, and has not waited for the stream since. It sees old values, or the stream sees the new ones.",
            (
                "Wait before the host's access: `stream.synchronize()`, or `event.synchronize()` for an event that "
                "was recorded behind the operation.",
                "Use the blocking form of the copy: `non_blocking=False`, `x.numpy(stream)`.",
                "Let the stream do what the host does, by a function that it calls in its order: "
                "`stream.call(function)`.",
            ),
            _SANITIZE,
            _HOST,
            _HOST.replace("hs.host", "stream.synchronize()\nhs.host"),
        ),
        "use-after-free": Page(
            "memory goes back to the allocator while a stream still uses it",
            "An allocator gives freed memory out again in the order of the stream that it was allocated on. Another "
            "stream that still works on it is not asked: what it reads may be what the next owner wrote.",
            (
                "Tell the allocator of the other stream: `x.record_stream(side)`.",
                "Let the allocating stream wait for the other one before the memory is dropped: "
                "`main.wait(side.record())`.",
                "Keep the object until the host has synchronized with the stream that uses it.",
            ),
            _SANITIZE,
            _DROPPED,
            _DROPPED.replace("del x", "x.record_stream(side)\ndel x"),
        ),
        "refilled-pinned-memory": Page(
            "pinned memory changes before the copy that reads it has run",
            "A copy from pinned memory reads it when the stream gets there, not when it is called. The host changed "
            "the memory in between, so that the device may get the new values instead of the old ones.",
            (
                "Wait for the copy before the memory is filled again: `stream.synchronize()`, or an event that was "
                "recorded behind the copy.",
                "Use two buffers or more in turn, each with an event that is waited for before its next use.",
                "Copy from pageable memory, which is read before the call returns.",
            ),
            _SANITIZE,
            _REFILLED,
            _REFILLED.replace("host[:] = 2", "stream.synchronize()\nhost[:] = 2"),
        ),
        "unknown-accesses": Page(
            "pinned memory changed, and a function that declares no writes may have done it",
            "A function on a stream stands before a copy from pinned memory, and does not say what it writes. If the "
            "function made the change it is right; if the host did, the memory was refilled too early. It is listed "
            "and changes no exit code.",
            (
                "Declare what the function writes where it is enqueued: `stream.call(function, writes=[array])`.",
                "If the host makes the change, let it wait for the copy before.",
                "Run under a schedule or without `--sanitize=threads`: there is seen what functions write.",
            ),
            "halstream run --sanitize=threads example.py",
            _UNKNOWN,
            _UNKNOWN.replace("call(fill)", "call(fill, writes=[host])"),
        ),
        "ordered-by-query": Page(
            "only a query that returned true orders two operations",
            "The program asked whether the work was done, and went on when it was. That is an order only as long as "
            "nobody leaves out the question, or goes on after some tries. It is listed and changes no exit code.",
            (
                "Wait: `stream.synchronize()` or `event.synchronize()`. It returns at once where the work is done.",
                "Let the next operation's stream wait for the event instead of the host.",
                "If polling is meant, suppress it: the report ends with the rule.",
            ),
            _SANITIZE,
            _QUERIED,
            _QUERIED.replace("while not stream.query():\n    pass", "stream.synchronize()"),
        ),
        "ordered-by-host-timing": Page(
            "only the moments at which host threads made their calls order two operations",
            "Two threads work on the same memory. One happened to come later, and the runtime saw nothing that made "
            "it wait: no event, no synchronization, no hand-over. It is listed and changes no exit code.",
            (
                "Let one thread wait for what the other enqueued: record an event there, and wait for it here.",
                "Hand over by what is seen: `threading.Event`, a queue, a lock, `thread.join()`.",
                "If the order comes from elsewhere, such as another library, suppress it: the report ends with the "
                "rule.",
            ),
            _SANITIZE,
            _TIMED,
            _TIMED.replace("while not done:\n    pass\n", "thread.join()\n").replace("= 2\nthread.join()", "= 2"),
        ),
        "kernel-bounds": Page(
            "a kernel works on memory that it was not given",
            "The address is outside of every allocation, was freed before the launch, or is misaligned. On a GPU that "
            "is an illegal memory access, which ends the context. The error has the kernel, the thread, the "
            "instruction and the nearest allocation.",
            (
                "Compare the index with the size before the access: `if (i < n)`, in Triton a mask.",
                "Launch a grid that fits the size, rounded up, and pass the size of the array that is passed.",
                "Keep the array until the launch is done, if its memory was freed before.",
            ),
            "halstream run example.py",
            _BOUNDS,
            _BOUNDS.replace("{ x[", "{ if (threadIdx.x < n) x["),
        ),
        "kernel-shared-race": Page(
            "threads of a block use shared memory without a barrier between them",
            "One thread reads or writes what another thread of the block writes, with nothing between that makes one "
            "wait. It is what compute-sanitizer's racecheck reports. Blocks of one warp often hide it.",
            (
                "Put `__syncthreads()` between the write and the access of the other threads; in a loop, also before "
                "the next round writes again.",
                "Between threads of one warp use `__syncwarp()`, or exchange by `__shfl_sync`.",
                "Give each thread a place of its own, or use atomic operations.",
            ),
            _SANITIZE,
            _SHARED,
            _SHARED.replace("    x[threadIdx.x] = part", "    __syncthreads();\n    x[threadIdx.x] = part"),
        ),
        "kernel-uninitialised": Page(
            "a kernel reads memory that nobody wrote",
            "The bytes have what was there before: of a pool that is often an old result, and the program seems "
            "right. It is what compute-sanitizer's initcheck reports.",
            (
                "Fill the array first: `zeros` instead of `empty`, or a fill on the same stream.",
                "Write before you read in the kernel: `=` instead of `+=` in the first round.",
                "Enqueue the operation that writes the array before the launch, and in its order.",
            ),
            _SANITIZE,
            _UNWRITTEN,
            _UNWRITTEN.replace("hs.empty", "hs.zeros"),
        ),
        "kernel-barrier": Page(
            "threads of a block meet a barrier at different places, or not all of them meet it",
            "A barrier waits for all threads of the block. Where some are in another branch, or have returned, a GPU "
            "hangs or goes on with what is not there yet. It is what compute-sanitizer's synccheck reports.",
            (
                "Move the barrier out of the branch, so that each thread gets to the same one.",
                "Let threads without work skip the work and not the barrier: no `return` in front of it.",
                "Name the threads that take part: `__syncwarp(mask)`, or a named barrier with its number of threads.",
            ),
            _SANITIZE,
            _SPLIT,
            _SPLIT.replace('        asm volatile("bar.sync 0;");\n', "").replace(
                "    }\n}", "    }\n    __syncthreads();\n}"
            ),
        ),
        "lost-by-compiler": Page(
            "torch.compile lost an order that the function has",
            "As it is written the function orders its accesses; what the compiler made of it does not. The report has "
            "the line of the generated code and the line of the program.",
            (
                "Keep the part with streams as it is: `torch.compiler.disable(function)`.",
                "Compile the parts on each stream by themselves, and wait between them outside of the compiled "
                "functions.",
                "Use one stream in the compiled function, where the compiler overlaps by itself what it can.",
            ),
            "pytest --stream-torch --stream-compiled example.py",
            _COMPILED,
            _COMPILED.replace("torch.compile(step, backend=forgetful)", "torch.compiler.disable(step)"),
        ),
        "stall-nobody-left": Page(
            "a wait can never end: nobody is left who could end it",
            "The report is the chain of who waits for whom. At its end stands what never comes: an event that is "
            "never recorded, a function that waits for a signal of the waiting thread, a value that nobody writes. "
            "The program would hang here.",
            (
                "Give the function or the stream what it waits for before the host waits for it.",
                "Record the event before anybody waits for it, on a stream that does not wait itself.",
                "Let another thread give it, one that does not wait for the same stream.",
            ),
            "halstream run example.py",
            _NOBODY,
            _NOBODY.replace("try:\n", "ready.set()\ntry:\n").replace('sep="\\n")\nready.set()', 'sep="\\n")'),
        ),
        "stall-circle": Page(
            "a wait can never end: each waits for the next, and the last for the first",
            "Threads, functions and streams wait for each other in a circle. The report names each with its line, and "
            "what breaks the circle. The program would hang here.",
            (
                "Let a function not wait for a thread that waits for the function's stream.",
                "Take locks in the same order everywhere, and release them before the host waits for a stream.",
                "Use a stream of its own for work that another stream's function waits for.",
            ),
            "halstream run example.py",
            _CIRCLE,
            _CIRCLE.replace("    begun.wait()\n    thread.join()\n", "    begun.wait()\n"),
        ),
        "leak": Page(
            "a stream, an event, memory or work is left at the end",
            "The program or the test made it and did not close, free or wait for it. In a program that runs for long "
            "such objects add up until the device has none left.",
            (
                "Close it: a `with` block, `close()`, or `free()`.",
                "Make it in a fixture that closes it after the test, or once for the session.",
                "Wait for unfinished work before the test ends: `stream.synchronize()`.",
            ),
            "halstream run --leaks example.py",
            _LEFT,
            _LEFT + "streams.pop().close()\n",
        ),
        "device-lost": Page(
            "the device failed, and no call of this process can use it any more",
            "A kernel trapped, failed an assertion, or a driver reported an error that does not go away. What was "
            "enqueued behind it does not run. On a GPU the process has to be started again.",
            (
                "Repair what the text names first: the kernel and its line, or the operator that failed.",
                "Look at the calls before it under the sanitizer: a missing wait gives operators wrong indices.",
                "On the host device `halstream.testing.recover()` brings it back, as pytest does after each test.",
            ),
            "halstream run example.py",
            _LOST,
            _LOST.replace('asm("trap;");', ""),
        ),
        "assertion-on-stream": Page(
            "an assertion failed in a function on a stream",
            "The function ran later and on another thread, so that no call of the program raises the error. A test "
            "fails with it nevertheless. Its input may not have been there yet.",
            (
                "Let the function's stream wait for what fills its input.",
                "Make the assertion on the host, behind a wait for the stream.",
                "Repair what computes the value, if the order is right.",
            ),
            "halstream run example.py",
            _ASSERTION,
            _ASSERTION.replace("stream.call(check", "x.fill(1, stream)\nstream.call(check"),
        ),
        "schedule-failure": Page(
            "the program fails in some order of its operations",
            "The program says nothing about the order of two operations, and in one of the orders that a device may "
            "choose it fails. The report has the shortest schedule that was found, in words, and a token that repeats "
            "it.",
            (
                "Let one of the two operations wait for the other: an event and a wait, or one stream for both.",
                "Replay the token in a debugger, and look at what the second operation finds: `halstream replay TOKEN "
                "program.py`.",
                "If each order is right, let the test accept each result.",
            ),
            "halstream run --schedules 50 example.py",
            _SCHEDULE,
            _SCHEDULE.replace("two.call", "two.wait(one.record())\ntwo.call"),
        ),
        "unsupported-operator": Page(
            "an operator of torch has no kernel on the host device",
            "The device runs operators by torch's kernels for the CPU. This one has none that fits, or calls a library "
            "of CUDA by itself. The text names it, why, and what to do.",
            (
                "Use torch's own operator in place of a library's, or run this part on the CPU: `x.cpu()`, and "
                "`.cuda()` behind it.",
                "For a kernel of your own give a version for the CPU: `halstream.torch.register_kernel(name, "
                "function)`.",
                "Skip the test where there is no GPU, if the operator is what it is about.",
            ),
            "halstream run --torch example.py",
            _OPERATOR,
            _OPERATOR.replace(
                "cudnn_affine_grid_generator(theta, 1, 1, 4, 4)", "nn.functional.affine_grid(theta, (1, 1, 4, 4))"
            ),
        ),
        "unsupported-name": Page(
            "a name of the mirrored package that halstream does not have",
            "halstream's dialects have the names for streams, events, devices and memory, each with its behaviour. "
            "Others raise instead of doing something else. `halstream lint` finds them without running anything.",
            (
                "Use the real package with the host device below it: `halstream run --torch program.py`, or "
                "`--paddle`.",
                "Correct the name: the text says which one is close, and the reference lists all.",
                "Ask before you use it: `hasattr` is false for what is absent.",
            ),
            "halstream run example.py",
            _NAME,
            _NAME.replace("synchronise", "synchronize"),
        ),
        "not-supported": Page(
            "a call is refused: this backend, or this kind of object, cannot do it",
            "Nothing was enqueued and nothing is broken: the text names what is missing and what can do it.",
            (
                "Use the form that the text names, such as source or PTX instead of machine code of a GPU.",
                "Choose another backend: `HALSTREAM_BACKEND`; `halstream info` lists those that are usable.",
                "Look at the list of limits, `docs/limits.md`, for what has no counterpart here.",
            ),
            "halstream run example.py",
            _REFUSED,
            _REFUSED.replace('hs.Kernel(b"\\x7fELF", ', "hs.Kernel(host=lambda grid, block: None, "),
        ),
    }
)
