"""torch.device, device queries, device-wide waits, runtime names, torch.cpu."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.torch import accelerator, cpu, cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Hold = Callable[[Any], Any]


def test_the_value_of_a_device() -> None:
    d = torch.device("cuda:1")
    assert (d.type, d.index, str(d), repr(d)) == ("cuda", 1, "cuda:1", "device(type='cuda', index=1)")
    for same in (torch.device("cuda", 1), torch.device(type="cuda", index=1), torch.device(1), torch.device(d)):
        assert same == d and hash(same) == hash(d)
    bare = torch.device("cuda")
    assert (bare.index, str(bare), repr(bare)) == (None, "cuda", "device(type='cuda')")
    assert bare != d and d != "cuda:1"
    assert pickle.loads(pickle.dumps(d)) == copy.deepcopy(d) == d
    with pytest.raises(AttributeError):
        d.index = 0  # type: ignore[misc]


@pytest.mark.parametrize("text", ["cuda0", "cuda:", "cuda:01", "cuda: 1", "cuda:-1", ":1", "", "1", "cuda:1 "])
def test_malformed_device_strings(text: str) -> None:
    with pytest.raises(RuntimeError, match="Invalid device string"):
        torch.device(text)


def test_unknown_device_types() -> None:
    with pytest.raises(RuntimeError, match=r"Expected one of cpu, cuda, .*start of device string: x"):
        torch.device("x:0")
    with pytest.raises(RuntimeError, match="must not be negative"):
        torch.device(-1)
    with pytest.raises(RuntimeError, match="index was passed explicitly"):
        torch.device("cuda:1", 1)
    with pytest.raises(TypeError):
        torch.device(1.5)


@pytest.mark.row(33)
@pytest.mark.parametrize(
    "function",
    [
        cuda.Stream,
        cuda.device,
        cuda.set_device,
        cuda.synchronize,
        cuda.current_stream,
        cuda.default_stream,
        cuda.get_device_name,
        cuda.get_device_properties,
    ],
)
def test_device_strings_of_the_wrong_kind(function: Any) -> None:
    with pytest.raises(RuntimeError, match="Invalid device string: 'cuda0'"):
        function("cuda0")
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        function("cpu")


@pytest.mark.row(31)
def test_check_error() -> None:
    cuda.check_error(0)
    cuda.check_error(cuda.cudart().cudaError.success)
    with pytest.raises(cuda.CudaError, match=r"out of memory \(2\)") as caught:
        cuda.check_error(2)
    assert isinstance(caught.value, RuntimeError)
    assert (cuda.cudaStatus.SUCCESS, cuda.cudaStatus.ERROR_NOT_READY) == (0, 34)


@pytest.mark.row(32)
@pytest.mark.parametrize("name", ["name", "capability", "properties"])
def test_device_queries_agree(name: str) -> None:
    query = getattr(cuda, f"get_device_{name}")
    assert query() == query(None) == query(cuda.current_device()) == query("cuda")
    with cuda.device(1):
        assert query() == query("cuda:1") == query(torch.device("cuda", 1))
    for wrong in (-1, 2):
        with pytest.raises(AssertionError, match="Invalid device id"):
            query(wrong)


def test_properties_of_a_host_device(backend: str) -> None:
    if backend != "host":
        pytest.skip("about host devices")
    facts = cuda.get_device_properties(1)
    assert facts.name == cuda.get_device_name(1)
    assert (facts.major, facts.minor) == cuda.get_device_capability(1) == (8, 0)
    assert facts.multi_processor_count >= 1
    assert cuda.can_device_access_peer(0, 1) is True
    assert cuda.can_device_access_peer("cuda:1", 1) is False
    with pytest.raises(AssertionError, match="Invalid device id"):
        cuda.can_device_access_peer(2, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        cuda.can_device_access_peer(0, -1)


def test_there_is_always_a_device() -> None:
    assert cuda.is_available() is True
    assert cuda.device_count() == accelerator.device_count() == hs.device_count()
    assert accelerator.is_available() is True
    assert accelerator.current_accelerator() == accelerator.current_accelerator(True) == torch.device("cuda")


@pytest.mark.row(34)
def test_a_forked_child_gets_an_error_that_names_spawn(child: Callable[..., Any]) -> None:
    done = child(
        """
        import os, warnings
        from halstream.torch import cuda

        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        assert not cuda.is_initialized()
        cuda.Stream().synchronize()
        assert cuda.is_initialized()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert not cuda.is_initialized()
                cuda.Stream()
            except RuntimeError as exc:
                known = "Cannot re-initialize CUDA in forked subprocess" in str(exc)
                code = 0 if known and "'spawn'" in str(exc) else 2
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.row(37)
def test_synchronize_takes_every_form_of_a_device() -> None:
    s = cuda.Stream()
    ran: list[int] = []
    forms: list[tuple[Any, ...]] = [(), ("cuda",), ("cuda:0",), (0,), (-1,)]
    forms += [(torch.device("cuda:0"),), (torch.device("cuda"),)]
    for number, args in enumerate(forms):
        s.call(ran.append, number)
        cuda.synchronize(*args)
        assert ran[-1] == number


@pytest.mark.row(37, 38)
@pytest.mark.parametrize("function", [cuda.synchronize, cuda.current_stream, cuda.default_stream])
@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu")])
def test_the_host_is_no_cuda_device(function: Any, device: Any) -> None:
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        function(device)


@pytest.mark.row(38)
def test_stream_getters_take_every_form_of_a_device() -> None:
    s = cuda.Stream(device=1)
    with cuda.stream(s), cuda.device(0):
        for far in (1, "cuda:1", torch.device("cuda:1"), cuda.device(1)):
            assert cuda.current_stream(far) is s
            assert cuda.default_stream(far).device == torch.device("cuda:1")
        for here in ("cuda", torch.device("cuda"), None, -1):
            assert cuda.current_stream(here) == cuda.default_stream(here) == cuda.default_stream(0)


def test_devices_that_do_not_exist() -> None:
    for function in (cuda.Stream, cuda.set_device, cuda.synchronize, torch.Stream, accelerator.set_device_index):
        with pytest.raises(RuntimeError, match="invalid device ordinal") as caught:
            function(7)
        assert isinstance(caught.value, torch.AcceleratorError)
        assert caught.value.error_code == 101
    with pytest.raises(RuntimeError, match="invalid device ordinal"), cuda.device(7):
        pass
    assert cuda.current_device() == 0


@pytest.mark.row(48)
@pytest.mark.parametrize("what", ["event", "stream", "device"])
def test_python_runs_while_a_thread_waits(what: str, hold: Hold) -> None:
    s = cuda.Stream()
    gate = hold(s)
    event = s.record_event()
    wait = {"event": event.synchronize, "stream": s.synchronize, "device": cuda.synchronize}[what]
    entered, done = threading.Event(), threading.Event()

    def waiter() -> None:
        entered.set()
        wait()
        done.set()

    thread = threading.Thread(target=waiter)
    thread.start()
    assert entered.wait(LIMIT)
    # With the lock held in the wait, this loop would never go on.
    assert sum(1 for _ in range(300_000)) == 300_000
    assert not done.is_set()
    gate.open()
    thread.join(LIMIT)
    assert done.is_set()


@pytest.mark.row(58)
def test_many_threads_initialise_at_once(child: Callable[..., Any]) -> None:
    done = child(
        """
        import threading
        from halstream.torch import cuda

        barrier, streams = threading.Barrier(16), []

        def first_use(i):
            barrier.wait()
            cuda.init()
            s = cuda.Stream(device=i % 2)
            s.record_event().synchronize()
            streams.append((cuda.current_device(), s.device_index, s.cuda_stream))

        threads = [threading.Thread(target=first_use, args=(i,)) for i in range(16)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert len(streams) == len(set(streams)) == 16, streams
        assert cuda.is_initialized()
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.row(62)
def test_set_device_index_of_the_host() -> None:
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
        accelerator.set_device_index("cpu")
    for wrong in (None, 1.5, object(), "cuda"):
        with pytest.raises(ValueError, match=r"Expected a torch.device with a specified index"):
            accelerator.set_device_index(wrong)
        with pytest.raises(ValueError, match=r"Expected a torch.device with a specified index"):
            cuda.set_device(wrong)
    accelerator.set_device_index(torch.device("cuda:1"))
    accelerator.set_device_index(-1)
    cuda.set_device(-1)
    assert accelerator.current_device_index() == cuda.current_device() == 1
    for old in (lambda: accelerator.set_device_idx(0), accelerator.current_device_idx):
        with pytest.warns(FutureWarning):
            old()
    assert cuda.current_device() == 0


@pytest.mark.row(64)
def test_synchronize_of_another_device_leaves_the_current_one() -> None:
    ran: list[int] = []
    cuda.Stream(device=1).call(ran.append, 1)
    accelerator.synchronize(1)
    assert ran == [1]
    accelerator.synchronize()
    cuda.synchronize(1)
    assert accelerator.current_device_index() == 0


def test_device_of_takes_objects_with_a_device() -> None:
    class Thing:
        is_cuda = True

        def get_device(self) -> int:
            return 1

    class Elsewhere:
        is_cuda = False

    with cuda.device_of(Thing()):
        assert cuda.current_device() == 1
    with cuda.device_of(Elsewhere()):
        assert cuda.current_device() == 0
    with pytest.raises(AttributeError, match="'int' object has no attribute 'is_cuda'"):
        cuda.device_of(1)


def test_get_device_module() -> None:
    assert torch.get_device_module() is torch.get_device_module("cuda:1") is cuda
    assert torch.get_device_module(torch.device("cpu")) is cpu
    with pytest.raises(RuntimeError, match="no module of 'xpu'"):
        torch.get_device_module("xpu")


def test_cpu_names_do_nothing() -> None:
    assert (cpu.is_available(), cpu.device_count(), cpu.current_device()) == (True, 1, "cpu")
    before, s, e = cpu.current_stream(), cpu.Stream(), cpu.Event()
    calls: list[Callable[[], Any]] = [
        lambda: cpu.set_device(0),
        cpu.synchronize,
        lambda: s.wait_stream(before),
        lambda: s.wait_event(e),
        s.record_event,
        e.record,
        lambda: e.wait(s),
        e.synchronize,
    ]
    assert [call() for call in calls] == [None] * len(calls)
    with cpu.stream(s) as given:
        assert given is None and cpu.current_stream() is s
        with cpu.stream(None):
            assert cpu.current_stream("cpu") is s
    assert cpu.current_stream() is before
    assert e.query() is True
    assert not isinstance(s, torch.Stream) and not isinstance(e, torch.Event)
