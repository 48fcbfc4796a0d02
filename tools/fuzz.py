"""Calls every public callable of every dialect with random wrong arguments, in child processes.

Usage: python tools/fuzz.py [--calls N] [--seed S] [--jobs J] [--write]
       python tools/fuzz.py --replay SEED:BATCH [--from N]

Each batch runs in a process of its own and is determined by the seed and the
batch's number. A batch fails when its process is ended by a signal or prints a
Go panic, when a call does not return within `HANG_S`, or when a call raises an
error that is not in `ALLOWED`. A failure is printed with the call and with what
replays it. ``--write`` puts the figures into docs/reliability.md.

Exit code 1 when anything failed.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import faulthandler
import importlib
import inspect
import mmap
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from fuzz_arguments import LIKELY, PLAIN, Bad, Deep, numpy_values

ROOT = Path(__file__).resolve().parent.parent
BATCH = 2000
HANG_S = 30.0
DATA_LIMIT = 4 << 30  # bytes of private memory of a batch's process

MODULES = (
    "halstream", "halstream.torch", "halstream.torch.cuda", "halstream.torch.cpu", "halstream.torch.accelerator",
    "halstream.paddle", "halstream.paddle.device", "halstream.paddle.device.cuda", "halstream.mindspore",
    "halstream.mindspore.hal", "halstream.mindspore.runtime", "halstream.mindspore.ops", "halstream.cupy",
    "halstream.cupy.cuda", "halstream.cupy.cuda.runtime", "halstream.cupy.cuda.driver", "halstream.cupyx",
    "halstream.cupyx.profiler", "halstream.acl", "halstream.acl.rt", "halstream.acl.util",
)  # fmt: skip

#: How the texts begin with which torch and paddle raise AssertionError. A tensor of
#: paddle raises its own also where another dialect takes it for a number.
ASSERTIONS = (
    "Invalid device id", "Invalid peer device id", "only one element variable can be converted to ",
    "When Variable is used as the condition of if/while ", "len() of a 0-D tensor is wrong",
    "Variable set_value function, arguments type only support ", "Variable Shape not match, ",
)  # fmt: skip

#: Errors that a wrong argument may raise, besides the family of HalError: Python's own
#: for wrong types, values, names, indices and sizes, and what a dialect documents.
ALLOWED = (
    TypeError, ValueError, AttributeError, IndexError, OverflowError, NotImplementedError, BufferError, MemoryError,
    StopIteration, ImportError,
)  # fmt: skip
#: Raised by name where the mirrored package raises them.
ALLOWED_NAMES = {"PicklingError", "AcceleratorError", "CUDARuntimeError", "CUDADriverError", "CudaError"}

#: Callables that are not called, and why.
EXCLUDED = {
    "call_native": "runs machine code at any address that it is given",
    "CFunctionAllocator": "calls machine code at any address that it is given",
    "delay": "takes as long as it is told to",
    "_sleep": "takes as long as it is told to",
    "process_report": "waits as long as it is told to",
    "Gate": "holds its stream until it is opened",
    "main": "is the command line",
    "encode": "is that of str, which raises LookupError for an unknown encoding",
}
#: Called rarely, since little can be called afterwards.
RARE = {"finalize", "use_backend", "reset_device", "reset_device_force", "deviceReset", "device_reset"}
#: Special methods that the statements of a program call.
SPECIAL = (
    "__enter__", "__eq__", "__hash__", "__repr__", "__str__", "__len__", "__iter__", "__next__", "__getitem__",
    "__setitem__", "__add__", "__sub__", "__mul__", "__iadd__", "__imul__", "__truediv__", "__floordiv__", "__mod__",
    "__pow__", "__matmul__", "__lt__", "__bool__", "__int__", "__float__", "__index__", "__contains__", "__dlpack__",
    "__dlpack_device__", "__cuda_stream__", "__array__", "__reduce_ex__", "__copy__", "__deepcopy__", "__dir__",
    "__format__", "__call__",
)  # fmt: skip


class Batch:
    """One batch of calls, the same each time."""

    def __init__(self, name: str) -> None:
        self.random = random.Random(name)
        self.plain = PLAIN + numpy_values()
        self.functions: list[tuple[str, Any]] = []
        self.objects: list[Any] = []
        for module in MODULES:
            try:
                found = importlib.import_module(module)
            except ImportError:
                continue
            for key in sorted(set(getattr(found, "__all__", None) or dir(found)) - set(EXCLUDED)):
                value = getattr(found, key, None)
                if callable(value) and not key.startswith("_") and not is_error(value):
                    self.functions.append((f"{module}.{key}", value))
        if not self.functions:
            raise SystemExit("no module can be imported")

    def argument(self) -> Any:
        """Return a random argument: a plain value or an object of the runtime."""
        if self.objects and self.random.random() < 0.35:
            return self.random.choice(self.objects)
        return self.random.choice(self.plain)(self.random)

    def target(self) -> tuple[str, Any]:
        """Return a random function, class or method."""
        while True:
            if self.objects and self.random.random() < 0.5:
                owner = self.random.choice(self.objects)
                if isinstance(owner, numpy.ndarray):
                    continue  # pinned memory: its methods are NumPy's
                names = [n for n in dir(type(owner)) if not n.startswith("_") or n in SPECIAL]
                name = self.random.choice(sorted(names))
                if name in EXCLUDED:
                    continue
                return f"{type(owner).__module__}.{type(owner).__name__}.{name}", (owner, name)
            name, function = self.random.choice(self.functions)
            if name.rpartition(".")[2] in RARE and self.random.random() < 0.98:
                continue
            return name, function

    def call(self) -> tuple[str, Callable[[], Any]]:
        """Return the text of the next call, and the call."""
        name, target = self.target()
        names, fewest = parameters(target)
        if self.random.random() < 0.75:  # as many as it takes, so that more than their number is checked
            count = self.random.randint(min(fewest, len(names)), len(names))
            args = [self.value_for(name) for name in names[:count]]
            keywords = {name: self.value_for(name) for name in names[count:] if self.random.random() < 0.3}
        else:
            args = [self.argument() for _ in range(self.random.choice([0, 0, 1, 1, 1, 2, 2, 3, 4, 6]))]
            some = self.random.sample([*names, "no_such_parameter"], 1)
            keywords = {name: self.argument() for name in some if self.random.random() < 0.4}
        changes = self.random.random() < 0.3

        def run() -> Any:
            if not isinstance(target, tuple):
                return target(*args, **keywords)
            owner, attribute = target
            found = getattr(owner, attribute)
            if callable(found):
                return found(*args, **keywords)
            if args and changes and isinstance(getattr(type(owner), attribute, None), property):
                setattr(owner, attribute, args[0])
            return found

        shown = ", ".join([*map(brief, args), *(f"{key}={brief(value)}" for key, value in keywords.items())])
        return f"{name}({shown})", run

    def value_for(self, name: str) -> Any:
        """Return an argument for a parameter: often of the kind that its name suggests."""
        if self.random.random() < 0.4:
            return self.argument()
        name = name.lower()
        kinds = [(type(one).__name__.lower(), one) for one in self.objects]
        alike = [one for kind, one in kinds if kind in name or name in kind]
        if alike and len(name) > 2:
            return self.random.choice(alike)
        for words, values in LIKELY:
            if any(word in name for word in words):
                return self.random.choice(values)
        return self.argument()

    def begin(self) -> None:
        """Make a few objects of each kind, so that methods are called from the start."""
        import halstream as hs
        from halstream import cupy, paddle, torch

        made = [hs.Stream(), hs.Event(), hs.empty(16, "f4"), hs.pinned_empty(8, "u1"), hs.Device(1), hs.zeros((2, 3))]
        made += [torch.Stream(), torch.Event(), cupy.cuda.Stream(), cupy.cuda.Event(), cupy.ones(4)]
        made += [paddle.device.Stream(), paddle.device.Event(), cupy.cuda.MemoryPool(), cupy.cuda.alloc(100)]
        closed = hs.Stream()
        closed.close()
        self.objects += [*made, closed]

    def keep(self, value: Any) -> None:
        """Keep an object of the runtime as a later argument."""
        for one in value if isinstance(value, (tuple, list)) else [value]:
            if type(one).__module__.startswith("halstream") and not isinstance(one, BaseException):
                if len(self.objects) >= 40:
                    self.objects.pop(self.random.randrange(len(self.objects)))
                self.objects.append(one)


def parameters(target: Any) -> tuple[list[str], int]:
    """Return the names of the positional parameters of a target, and how many it needs."""
    function = getattr(type(target[0]), target[1], None) if isinstance(target, tuple) else target
    try:
        found = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [], 0
    found = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name for p in found], sum(p.default is p.empty for p in found)


def is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, (BaseException, Warning))


def brief(value: Any) -> str:
    """Return a short text for an argument; it runs no code of an object that may fail."""
    if isinstance(value, (Bad, Deep, types.FunctionType)):
        return f"<{type(value).__name__}>"
    try:
        text = repr(value)
    except Exception as exc:
        return f"<{type(value).__name__}: {type(exc).__name__}>"
    return text.encode("ascii", "backslashreplace").decode() if len(text) < 80 else f"<{type(value).__name__}>"


def allowed(exc: BaseException) -> bool:
    """Return whether a call with wrong arguments may raise this."""
    from halstream import HalError

    if isinstance(exc, (HalError, *ALLOWED)) or type(exc).__name__ in ALLOWED_NAMES:
        return True
    # Errors of our own arguments' functions come back to the caller; warnings are errors nowhere here.
    if isinstance(exc, KeyError):  # cupy's own class and words, and those of NumPy arrays in halstream.shared()
        return "memory hook" in str(exc) or str(exc).startswith("'There are no fields in dtype")
    if isinstance(exc, AssertionError):  # torch's and paddle's own class and words
        return str(exc).startswith(ASSERTIONS)
    return (type(exc) is RuntimeError and bool(str(exc))) or isinstance(exc, ZeroDivisionError)


def child(name: str, state: str, first: int, count: int) -> int:
    """Run a batch; the parent reads the call's number and text from the file `state`."""
    faulthandler.enable()
    # Arrays of gigabytes are errors, and not minutes of filling them.
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda args: None
    os.chdir(tempfile.mkdtemp(prefix="fuzz-"))
    batch = Batch(name)
    with open(state, "r+b") as file:
        shared = mmap.mmap(file.fileno(), 4096)
    outcomes: collections.Counter[str] = collections.Counter()
    batch.begin()
    for number in range(count):
        text, run = batch.call()
        record = text.encode()[:4000]
        shared[:] = struct.pack("<II", number, len(record)) + record.ljust(4088, b"\0")
        try:
            value = run()
            if isinstance(value, (types.GeneratorType, map, filter)):
                value = [x for x, _ in zip(value, range(3))]  # noqa: B905
        except BaseException as exc:
            outcomes[type(exc).__name__] += 1
            if not allowed(exc) and number >= first:
                print(f"\nWRONG {number}: {text}\n  {type(exc).__name__}: {str(exc)[:300]}", flush=True)
                for line in traceback_lines(exc):
                    print(line, flush=True)
        else:
            outcomes["returned"] += 1
            batch.keep(value)
    print("OUTCOMES", *(f"{key}={n}" for key, n in outcomes.most_common()), flush=True)
    return 0


def traceback_lines(exc: BaseException) -> list[str]:
    import traceback

    return [f"    {f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(exc.__traceback__)[-4:]]


@dataclass
class Result:
    """What came of a batch."""

    number: int
    calls: int
    problems: list[str]
    outcomes: collections.Counter[str]


def run_batch(seed: int, number: int, first: int = 0, count: int = BATCH) -> Result:
    """Run a batch in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        state, output = Path(folder, "state"), Path(folder, "output")
        state.write_bytes(bytes(4096))
        words = [sys.executable, __file__, "--child", f"{seed}:{number}", str(state), str(first), str(count)]
        env = {
            **os.environ, "PYTHONHASHSEED": "0", "HALSTREAM_BACKEND": "host", "HALSTREAM_HOST_MEMORY": str(64 << 20),
        }  # fmt: skip
        with output.open("wb") as sink:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, env=env, start_new_session=True
            )
            hung = watch(process, state)
        text = output.read_text(errors="replace")
        called, length = struct.unpack("<II", state.read_bytes()[:8])
        last = state.read_bytes()[8 : 8 + length].decode(errors="replace")
    problems = re.findall(r"^WRONG .*(?:\n {2,}.*)*", text, re.MULTILINE)
    if hung:
        problems.append(f"HANGS in call {called}: {last}\n{tail(text)}")
    elif process.returncode or re.search(r"^(panic: |fatal error: |Fatal Python error)", text, re.MULTILINE):
        problems.append(f"ENDED with {process.returncode} in call {called}: {last}\n{tail(text)}")
    counts = re.search(r"^OUTCOMES (.*)", text, re.MULTILINE)
    pairs = (pair.split("=") for pair in counts[1].split()) if counts else ()
    return Result(number, called + 1, problems, collections.Counter({key: int(n) for key, n in pairs}))


def watch(process: subprocess.Popen[bytes], state: Path) -> bool:
    """Wait for the end of a batch; end one in which a call does not return, and return whether it was so."""
    seen, since = b"", time.monotonic()
    while True:
        try:
            process.wait(0.5)
            return False
        except subprocess.TimeoutExpired:
            now = state.read_bytes()[:8]
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > HANG_S:
                process.send_signal(signal.SIGABRT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                return True


def tail(text: str) -> str:
    return "\n".join("    " + line for line in text.strip().splitlines()[-40:])


def write_figures(seed: int, calls: int, failed: int, outcomes: collections.Counter[str], took: float) -> None:
    """Put the figures into docs/reliability.md."""
    from figures import put

    errors = ", ".join(f"{name} {count:,}" for name, count in outcomes.most_common(8))
    put("fuzz", [
        f"`python tools/fuzz.py --calls {calls} --seed {seed}`: {calls:,} calls of {len(MODULES)} modules in "
        f"{took / 60:.0f} minutes, {failed} failures. Outcomes: {errors}.",
    ])  # fmt: skip


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, state, first, count = sys.argv[2:]
        return child(name, state, int(first), int(count))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--replay", metavar="SEED:BATCH")
    parser.add_argument("--from", dest="first", type=int, default=0, help="with --replay: the first call to report")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    options = parser.parse_args()
    seed, batches = options.seed, range(-(-options.calls // BATCH))
    if options.replay:
        seed, number = map(int, options.replay.split(":"))
        batches = range(number, number + 1)
    begin = time.monotonic()
    outcomes: collections.Counter[str] = collections.Counter()
    calls = failed = 0
    seen: collections.Counter[str] = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda number: run_batch(seed, number, options.first), batches):
            calls += result.calls
            failed += len(result.problems)
            outcomes += result.outcomes
            for problem in result.problems:
                kind = re.sub(r"\d+", "0", problem.partition("(")[0]) + problem.partition("\n")[2][:60]
                seen[kind] += 1
                if seen[kind] == 1:
                    print(f"{problem}\n  replay: python tools/fuzz.py --replay {seed}:{result.number}", flush=True)
    took = time.monotonic() - begin
    print(f"fuzz: {calls:,} calls in {took:.0f} s, {failed} failures of {len(seen)} kinds")
    print("fuzz:", ", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    if options.write:
        write_figures(seed, calls, failed, outcomes, took)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
