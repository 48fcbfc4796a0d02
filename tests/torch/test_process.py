"""What concerns a process: imports in any order, refusals, fork, exit, undoing."""

from __future__ import annotations

import os
from typing import Any

import pytest

# Each program imports torch, which takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(300)

WORK = """
x = torch.arange(4.0, device="cuda") * 2
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    y = x + 1
"""


@pytest.mark.parametrize(
    "imports",
    ["import halstream.torch.cuda_on_host, torch", "import torch, halstream.torch.cuda_on_host",
     "import torch\nfrom halstream.torch import redirect\nredirect()"],
    ids=["before torch", "after torch", "by the function"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "torch.cuda.synchronize()", "import os, sys; sys.exit(0)", "del x, y"])
def test_F14_a_program_ends_well_with_work_pending(program: Any, imports: str, end: str) -> None:
    done = program(f"{imports}\n{WORK}\ntorch.cuda._sleep(20_000_000)\nprint('done')\n{end}\n")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_objects_outlive_the_interpreters_atexit(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import atexit, builtins, torch
        builtins.kept = [torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.Event()]
        builtins.kept[2].record()
        builtins.pinned = torch.ones(4).pin_memory()
        atexit.register(lambda: print(builtins.kept[0].sum().item()))
        """
    )
    assert (done.returncode, done.stdout) == (0, "4.0\n"), done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="the system does not tell what threads do")
def test_the_interpreter_ends_when_autograds_threads_have_let_go_of_a_backward_pass(program: Any) -> None:
    done = program(
        """
        import atexit, ctypes, signal, threading

        def last():
            with open(f"/proc/self/task/{thread[0]}/status") as status:
                blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
            print("in the handler" if blocked & 1 << signal.SIGHUP - 1 else "idle")

        atexit.register(last)  # runs behind what redirect() registers
        import torch
        from halstream.torch import redirect
        redirect()

        libc = ctypes.CDLL(None)
        libc.signal.argtypes = ctypes.c_int, ctypes.c_void_p
        # The handler is sleep(), with the number of the signal as its argument: 1 second.
        libc.signal(signal.SIGHUP, ctypes.cast(libc.sleep, ctypes.c_void_p))
        x = torch.ones(4, device="cuda", requires_grad=True)
        x.register_hook(lambda _: thread.extend([threading.get_native_id(), threading.get_ident()]))
        thread = []
        (x * 3).sum().backward()
        signal.pthread_kill(thread[1], signal.SIGHUP)
        """
    )
    assert (done.returncode, done.stdout) == (0, "idle\n"), done.stderr


def test_calls_while_the_interpreter_ends_are_quiet(program: Any) -> None:
    done = program(
        """
        import atexit

        class Kept:
            def __init__(self):
                self.tensor, self.stream = torch.ones(4, device="cuda"), torch.cuda.Stream()
                self.event = self.stream.record_event()

            def end(self, print=print):
                torch.cuda.synchronize()
                torch.cuda.current_stream().synchronize()
                self.stream.synchronize()
                assert self.stream.query()
                self.event.synchronize()
                assert self.event.query()
                del self.tensor
                torch.cuda.empty_cache()
                torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                print("quiet")

        class Collected(Kept):
            __del__ = Kept.end

        atexit.register(lambda: kept[0].end())  # runs behind what redirect() registers
        import torch
        from halstream.torch import redirect
        redirect()
        kept = Kept(), Kept()
        atexit.register(kept[1].end)
        collected = Collected()
        torch.cuda.synchronize()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "quiet\n" * 3, ""), done.stderr


def test_F13_a_second_redirection_says_so_and_changes_nothing(program: Any) -> None:
    done = program(
        """
        import halstream.torch as ht
        first, second = ht.redirect(), ht.redirect()
        import torch
        print(first.already, second.already)
        second.undo()
        print(torch.cuda.is_available())
        """
    )
    assert done.stdout == "False True\nTrue\n", done.stderr


def test_F13_undoing_gives_torch_its_names_back(program: Any) -> None:
    done = program(
        """
        import torch
        names = ("_cuda_getDeviceCount", "_cuda_setStream", "_cudart", "_has_cuda", "_CudaStreamBase")
        def state():
            found = [getattr(torch._C, name, None) for name in names]
            return [*found, torch.cuda.Stream, torch.cuda.Event, torch.compile, torch.cuda._initialized]
        before, available = state(), torch.cuda.is_available()
        import halstream.torch as ht
        with ht.redirect():
            assert torch.cuda.is_available() and torch.cuda.Stream is not before[5]
            x = torch.ones(2, device="cuda")
        assert state() == before and torch.cuda.is_available() == available
        with ht.redirect() as again:
            assert not again.already
            assert (x + 1).tolist() == [2, 2] and torch.cuda.current_stream() == torch.cuda.default_stream()
        print("undone")
        """
    )
    assert done.stdout == "undone\n", done.stderr


def test_F13_cpu_tensors_are_what_they_were(program: Any) -> None:
    done = program(
        """
        import torch
        def numbers():
            torch.manual_seed(1)
            model = torch.nn.Linear(4, 3)
            model(torch.rand(2, 4)).sum().backward()
            return [model.weight.grad, torch.randn(5), torch.randperm(6)]
        before = numbers()
        import halstream.torch.cuda_on_host
        assert all(torch.equal(a, b) for a, b in zip(before, numbers()))
        print("same")
        """
    )
    assert done.stdout == "same\n", done.stderr


def test_F12_a_forked_child_gets_torchs_own_error(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import os, sys, torch
        torch.ones(2, device="cuda")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(torch.cuda._is_in_bad_fork(), torch.cuda.is_initialized())
            try:
                torch.ones(2, device="cuda")
            except RuntimeError as exc:
                print(exc, flush=True)
            print((torch.ones(2) + 1).tolist(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(torch.ones(2, device="cuda").tolist())
        """
    )
    state, error, cpu, parent = done.stdout.splitlines()
    assert state == "True False"
    assert error.startswith("Cannot re-initialize CUDA in forked subprocess"), done.stderr
    assert "spawn" in error and (cpu, parent) == ("[2.0, 2.0]", "[1.0, 1.0]")


def test_F12_a_fork_waits_for_the_kernel_that_runs(program: Any) -> None:
    done = program(
        """
        import os
        seen = []
        os.register_at_fork(before=lambda: seen.append(counters()["running"]))  # the first one runs last
        import halstream.torch.cuda_on_host
        import torch
        from halstream_torch_device import counters
        a = torch.ones(1500, 1500, device="cuda")
        torch.cuda.synchronize()
        for _ in range(20):
            a = a @ a / 1500
        while not counters()["running"]:
            pass
        child = os.fork()
        if child == 0:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), seen, float(a.mean()))
        """
    )
    assert done.stdout == "0 [0] 1.0\n", done.stderr


def test_F12_workers_of_a_data_loader_may_be_forked(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch
        torch.ones(2, device="cuda")
        data = torch.utils.data.TensorDataset(torch.arange(8.0))
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, pin_memory=True)
        print([float(batch.cuda(non_blocking=True).sum()) for (batch,) in loader])
        """
    )
    assert (done.returncode, done.stdout) == (0, "[6.0, 22.0]\n"), done.stderr


def test_F12_a_redirection_in_a_forked_child_is_refused(program: Any) -> None:
    done = program(
        """
        import os, sys
        import halstream as hs
        hs.Stream().synchronize()
        child = os.fork()
        if child == 0:
            import halstream.torch
            try:
                halstream.torch.redirect()
            except RuntimeError as exc:
                print(exc, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        """
    )
    assert done.stdout.startswith("Cannot re-initialize CUDA in forked subprocess"), done.stderr


REFUSALS = {
    "an older version": ("torch.__version__ = '2.12.1'", "torch 2.12.1 was not tested", "from 2.13 to 2.15"),
    "a newer version": ("torch.__version__ = '2.16.0'", "torch 2.16.0 was not tested", "or a newer halstream"),
    "cuda was used": (
        "torch.cuda.is_initialized = lambda: True",
        "torch.cuda was used already",
        "halstream run --torch",
    ),
    "another backend": ("import os; os.environ['HALSTREAM_BACKEND'] = 'cuda'", "HALSTREAM_BACKEND is 'cuda'", "'host'"),
}


@pytest.mark.parametrize(("change", "what", "remedy"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_say_why_and_what_to_do(program: Any, change: str, what: str, remedy: str) -> None:
    source = f"import torch\n{change}\nimport halstream.torch\nhalstream.torch.redirect()\n"
    done = program(source)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and what in last and remedy in last, done.stderr


def test_a_gpu_is_not_hidden_unless_asked_for(program: Any, tmp_path: Any) -> None:
    source = """
        import glob, os, torch
        found = glob.glob
        glob.glob = lambda pattern, **k: ["/dev/nvidia0"] if pattern.startswith("/dev/nvidia") else found(pattern, **k)
        torch.version.cuda = "13.2"
        import halstream.torch as ht
        try:
            ht.redirect()
        except ht.RedirectError as exc:
            print(exc)
        ht.redirect(instead_of_gpu=True)
        print(torch.cuda.is_available())
    """
    done = program(source, env={"CUDA_VISIBLE_DEVICES": "0", "HALSTREAM_TORCH_INSTEAD_OF_GPU": ""})
    refusal, after = done.stdout.splitlines()
    assert "/dev/nvidia0" in refusal and "instead_of_gpu=True" in refusal and after == "True", done.stderr


def test_nothing_reaches_the_driver(program: Any) -> None:
    """Every function of torch._C for CUDA is replaced: only settings that torch keeps itself stay."""
    done = program(
        """
        import torch
        before = {name: getattr(torch._C, name) for name in dir(torch._C) if name.startswith("_cuda_")}
        import halstream.torch.cuda_on_host
        print(*(name for name, value in before.items() if getattr(torch._C, name) is value))
        """
    )
    kept = (
        "_cuda_tunableop",
        "_cuda_record_untuned",
        "_cuda_get_cudnn",
        "_cuda_set_cudnn",
        "_cuda_get_conv",
        "_cuda_CUDAAllocator",
    )
    others = [
        n
        for n in done.stdout.split()
        if not n.startswith((*kept, "_cuda_memoryMetadataSupported", "_cuda_getCompiledVersion"))
    ]
    assert done.returncode == 0 and others == [], done.stderr


def test_a_library_is_loaded_no_more_than_torch_itself_loads(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch
        torch.ones(4, device="cuda").sum().item()
        print("libcuda.so" in open("/proc/self/maps").read())
        """
    )
    assert done.stdout == "False\n", done.stderr


SCRIPT = """
import torch
assert torch.cuda.is_available()
a, b = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(a):
    x = torch.ones(64, device="cuda")
with torch.cuda.stream(b):
    y = x * 2
torch.cuda.synchronize()
assert float(y.sum()) == 128
"""


def _command(tmp_path: Any, *arguments: str, source: str = SCRIPT) -> Any:
    import subprocess
    import sys

    (tmp_path / "app.py").write_text(source)
    command = [sys.executable, "-m", *arguments]
    # An installed halstream is a plug-in of pytest by its entry point; here it is named.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env)


def test_halstream_run_redirects_a_program_that_names_halstream_nowhere(tmp_path: Any) -> None:
    right = SCRIPT.replace("with torch.cuda.stream(b):", "b.wait_stream(a)\nwith torch.cuda.stream(b):")
    done = _command(tmp_path, "halstream", "run", "--torch", "app.py", source=right)
    assert done.returncode == 0, done.stderr


def test_halstream_run_with_the_sanitizer(tmp_path: Any) -> None:
    done = _command(tmp_path, "halstream", "run", "--torch", "--sanitize", "app.py")
    assert done.returncode == 1
    assert "app.py:8" in done.stderr and "b.wait_stream(a)" in done.stderr, done.stderr


def test_halstream_run_with_schedules(tmp_path: Any) -> None:
    done = _command(tmp_path, "halstream", "run", "--torch", "--schedules", "3", "--shrink-runs", "1", "app.py")
    assert done.returncode == 1 and "halstream replay --torch" in done.stdout, done.stdout + done.stderr


PARENT = """
import os, sys
import torch
with open(f"/proc/{os.getppid()}/maps") as maps, open("parents", "a") as file:
    print(os.getppid(), "libtorch_cpu" in maps.read(), torch.initial_seed(), file=file)
a, b = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(a):
    x = torch.ones(64, device="cuda")
b.wait_stream(a)
with torch.cuda.stream(b):
    y = x * 2
torch.cuda.synchronize()
"""


def test_schedules_of_a_program_with_torch_import_it_once(tmp_path: Any) -> None:
    done = _command(tmp_path, "halstream", "run", "--torch", "--schedules", "4", "app.py", source=PARENT)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "parents").read_text().splitlines()
    assert len(lines) == 4 and len(set(lines)) == 1, lines
    assert lines[0].split()[1] == "True", "the process that starts a run has torch loaded"


LATER = """
import sys
with open("imported", "a") as file:
    print("torch._dynamo" in sys.modules, file=file)
if len(sys.argv) > 1:
    import os
    os.environ["TORCH_COMPILE_DISABLE"] = "1"
import torch
from torch._dynamo import config, device_interface
assert config.disable is (len(sys.argv) > 1)
cuda = device_interface.CudaInterface
assert cuda.Event is torch.cuda.Event and cuda.Stream is torch.cuda.Stream
torch.ones(2, device="cuda").sum().item()
"""


def test_what_torch_imports_later_is_imported_once_unless_the_program_changes_its_settings(tmp_path: Any) -> None:
    for words, imported in (([], ["False", "True", "True"]), (["disable"], ["False"] * 3)):
        command = ["halstream", "run", "--torch", "--schedules", "3", "app.py", *words]
        done = _command(tmp_path, *command, source=LATER)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "imported").read_text().split() == imported
        (tmp_path / "imported").unlink()


SPAWNED = """
import torch

def work(rank):
    torch.ones(2, device="cuda").sum().item()

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=1)
"""


def test_schedules_say_that_streams_were_those_of_started_processes(tmp_path: Any) -> None:
    done = _command(tmp_path, "halstream", "run", "--torch", "--schedules", "4", "app.py", source=SPAWNED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "its streams are those of processes that it started" in done.stdout, done.stdout
    own = SPAWNED.replace("torch.multi", "work(0)\n    torch.multi")
    done = _command(tmp_path, "halstream", "run", "--torch", "--schedules", "2", "app.py", source=own)
    assert "passed under 2 schedule(s)" in done.stdout, done.stdout
    assert "not under them were the streams of processes that it started" in done.stdout, done.stdout
    alone = own.replace("work, nprocs=1", "print, nprocs=1")
    done = _command(tmp_path, "halstream", "run", "--torch", "--schedules", "2", "app.py", source=alone)
    assert done.stdout.endswith("steps)\n") and "passed under 2 schedule(s)" in done.stdout, done.stdout


def test_the_plugin_of_pytest(tmp_path: Any) -> None:
    source = "import torch\ndef test_it():\n    assert torch.ones(2, device='cuda').sum() == 2\n"
    (tmp_path / "conftest.py").write_text("import torch\nassert torch.cuda.is_available()\n")
    done = _command(
        tmp_path,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "halstream.pytest_plugin",
        "--stream-torch",
        "app.py",
        source=source,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_F23_a_device_has_a_primary_context_from_its_first_use(program: Any) -> None:
    done = program(
        """
        import torch
        fuses = torch._C._jit_can_fuse_on_gpu()
        import halstream.torch as ht
        redirection = ht.redirect()
        def contexts():
            return [torch._C._cuda_hasPrimaryContext(i) for i in range(2)]
        torch.cuda.init()
        print(contexts())
        x = torch.randn(1, device="cuda:1")
        torch.randn(1).copy_(x)
        torch.randn(1).pin_memory()
        repr(x)
        print(contexts())
        torch.cuda.set_device(0)
        print(contexts())
        torch._C._jit_override_can_fuse_on_gpu(not fuses)  # the program's choice holds once it is undone
        redirection.undo()
        print(torch._C._jit_can_fuse_on_gpu() is not fuses)
        """
    )
    assert done.stdout == "[False, False]\n[False, True]\n[True, True]\nTrue\n", done.stderr
