"""Triton kernels on the redirected device: in stream order, checked, in captures, and what cannot be."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import halstream.torch as ht
import pytest
from conftest import Child

pytest.importorskip("triton", reason="Triton is not installed")

HERE = Path(__file__).name
KERNELS = "triton_kernels"


@pytest.fixture(scope="module")
def kernels(redirected: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the kernels of the tests, compiled anew in a cache of their own."""
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    yield importlib.import_module(KERNELS)
    if before is None:
        del os.environ["TRITON_CACHE_DIR"]
    else:
        os.environ["TRITON_CACHE_DIR"] = before


def test_F34_a_kernel_runs_in_the_order_of_its_stream(torch: Any, kernels: Any, held: Callable[[Any], Any]) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    kernels.scale[(1,)](x, 1000, 1.0, BLOCK=1024)  # compiled before the stream is held
    side.wait_stream(torch.cuda.current_stream())
    gate = held(side)
    with torch.cuda.stream(side):
        kernels.scale[(1,)](x, 1000, 2.0, BLOCK=1024)
        x.add_(1)
        kernels.scale[(1,)](x, 1000, 10.0, BLOCK=1024)
    assert not side.query()
    gate.open()
    side.synchronize()
    assert x.tolist() == [30.0] * 1000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_matrix_products_equal_torchs(torch: Any, kernels: Any, dtype: str) -> None:
    of = getattr(torch, dtype)
    a, b = (torch.randint(-4, 5, (64, 64), device="cuda").to(of) for _ in range(2))  # products are exact
    c = torch.empty(64, 64, device="cuda")
    kernels.product[(2, 2)](a, b, c, 64, M=32, N=32, K=32)
    assert torch.equal(c, a.float() @ b.float())


def test_arguments_of_all_types_arrive(torch: Any, kernels: Any) -> None:
    out = torch.zeros(5, dtype=torch.float64, device="cuda")
    kernels.types[(1,)](out, True, -3, 2**31 - 1, -(2**40), 0.5, None)
    assert out.tolist() == [1, -3, 2**31 - 1, -(2**40), 0.5]
    one = torch.full((1,), 21.0, device="cuda")
    kernels.pairs[(1,)]((one, 2.0), out)
    assert out[0] == 42


def test_heuristics_and_functions_of_libdevice(torch: Any, kernels: Any) -> None:
    x = torch.linspace(-3, 3, 100, device="cuda")
    expected = torch.exp2(torch.sin(x))
    kernels.whole[(1,)](x, 100)
    assert torch.allclose(x, expected, atol=1e-6)


def test_tensor_descriptors_of_the_host_and_of_the_device(torch: Any, kernels: Any) -> None:
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor

    source = torch.arange(256.0, device="cuda").reshape(16, 16)
    out = torch.empty_like(source)
    kernels.through_descriptor[(1,)](TensorDescriptor.from_tensor(source, [16, 16]), out, N=16)
    assert torch.equal(out, source + 1)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    out.zero_()
    kernels.descriptor_of_device[(1,)](source, out, 16, N=16)
    assert torch.equal(out, source + 1)


def test_F34_a_captured_kernel_runs_in_each_replay(torch: Any, kernels: Any, captured: Callable[..., Any]) -> None:
    x = torch.ones(100, device="cuda")
    kernels.scale[(1,)](x, 100, 1.0, BLOCK=128)
    graph, _ = captured(lambda: kernels.scale[(1,)](x, 100, 2.0, BLOCK=128))
    assert x.sum() == 100  # capturing ran nothing
    for _ in range(3):
        graph.replay()
    assert x.sum() == 800


def test_F34_a_missing_wait_between_kernels_is_reported_with_the_line_that_repairs_it(torch: Any, kernels: Any) -> None:
    side, x = torch.cuda.Stream(), torch.ones(1024, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            kernels.scale[(1,)](x, 1024, 2.0, BLOCK=1024)
        kernels.scale[(1,)](x, 1024, 3.0, BLOCK=1024)
        torch.cuda.synchronize()
    (found,) = report.races
    assert (found.first.operation, found.second.operation) == ("scale", "scale")
    assert "torch.cuda.default_stream().wait_stream(side)" in found.text, found.text
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            kernels.scale[(1,)](x, 1024, 2.0, BLOCK=1024)
        torch.cuda.default_stream().wait_stream(side)
        kernels.scale[(1,)](x, 1024, 3.0, BLOCK=1024)
        torch.cuda.synchronize()
    assert not report.all, str(report)


@pytest.mark.parametrize("count", [1024, 1025])
def test_F34_kernels_on_different_rows_are_silent_and_one_element_too_far_is_not(
    torch: Any, kernels: Any, count: int
) -> None:
    side, rows = torch.cuda.Stream(), torch.ones(2, 1024, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            kernels.scale[(1,)](rows[0], count, 2.0, BLOCK=2048)
        kernels.scale[(1,)](rows[1], 1024, 3.0, BLOCK=1024)
        torch.cuda.synchronize()
    assert bool(report.races) == (count > 1024)
    assert all("touch the same 4 bytes" in found.text for found in report.races), str(report)


def test_a_kernel_that_only_reads_is_no_race_with_another(torch: Any, kernels: Any) -> None:
    side, x = torch.cuda.Stream(), torch.ones(1024, device="cuda")
    a, b = torch.empty_like(x), torch.empty_like(x)
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            kernels.add[(1,)](x, x, a, 1024, BLOCK=1024)
        kernels.add[(1,)](x, x, b, 1024, BLOCK=1024)
        torch.cuda.synchronize()
    assert not report.all, str(report)


@pytest.mark.usefixtures("recovers")
def test_F34_an_access_behind_a_tensor_loses_the_device(torch: Any, kernels: Any) -> None:
    x = torch.ones(1000, device="cuda")
    kernels.scale[(1,)](x, 1001, 2.0, BLOCK=1024)
    with pytest.raises(torch.AcceleratorError, match="an illegal memory access was encountered: scale") as error:
        torch.cuda.synchronize()
    assert error.value.error_code == 700
    text = str(error.value)
    assert "1 bytes after the nearest allocation" in text and "of size 4000 bytes" in text
    lines = (Path(__file__).parent / f"{KERNELS}.py").read_text().splitlines()
    line = next(number for number, one in enumerate(lines, 1) if "* factor" in one)
    assert f"{KERNELS}.py:{line}) by thread (" in text
    assert f"{HERE}:" in text  # the line of the launch
    with pytest.raises(torch.AcceleratorError):
        kernels.scale[(1,)](x, 1000, 2.0, BLOCK=1024)


@pytest.mark.usefixtures("recovers")
def test_F34_an_assertion_of_a_kernel_loses_the_device(torch: Any, kernels: Any) -> None:
    x = torch.arange(4, device="cuda", dtype=torch.int32)
    kernels.fails[(1,)](x, N=4, debug=True)
    with pytest.raises(torch.AcceleratorError, match=r"device-side assert triggered: fails: .*too large") as error:
        torch.cuda.synchronize()
    assert error.value.error_code == 710


def test_what_a_kernel_prints_is_on_stdout(program: Child) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host, torch, triton_kernels
        triton_kernels.prints[(1,)](torch.tensor([7, 8], device="cuda"), N=2, num_warps=1)
        torch.cuda.synchronize()
        """,
        env={"PYTHONPATH": _path()},
    )
    assert done.returncode == 0, done.stderr
    assert "value: 7" in done.stdout and "value: 8" in done.stdout


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


def test_F36_autotuning_takes_the_first_configuration_and_says_so_once(
    torch: Any, kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.zeros(256, device="cuda")
    with pytest.warns(UserWarning, match="keeps its first configuration"):
        kernels.tuned[lambda meta: (256 // meta["BLOCK"],)](x, 256)
    assert kernels.tuned.best_config.kwargs == {"BLOCK": 32}
    assert x.sum() == 256  # it ran once
    kernels.tuned[lambda meta: (128 // meta["BLOCK"],)](x, 128)
    monkeypatch.setenv("HALSTREAM_TRITON_AUTOTUNE", "1")
    x.zero_()
    kernels.tuned[lambda meta: (64 // meta["BLOCK"] or 1,)](x, 64)
    assert x[0] > 3  # each configuration ran, and the best one again
    assert len(kernels.tuned.configs_timings) == 3


@pytest.mark.filterwarnings("ignore:an autotuned Triton kernel")
def test_F36_a_configuration_that_does_not_fit_is_passed_over(torch: Any, kernels: Any) -> None:
    a = torch.eye(32, device="cuda")
    c = torch.empty_like(a)
    kernels.tuned_product[(1, 1)](a, a, c, 32)
    assert torch.equal(c, a)
    assert kernels.tuned_product.best_config.kwargs == {"M": 32, "N": 32, "K": 32}
    assert kernels.tuned_product.best_config.num_warps == 4
    with pytest.raises(
        importlib.import_module("triton.runtime.errors").OutOfResources, match="threads, Required: 2048"
    ):
        kernels.product[(1, 1)](a, a, c, 32, M=32, N=32, K=32, num_warps=64)


def test_a_tensor_of_the_cpu_is_refused_in_tritons_words_and_a_pinned_one_is_taken(torch: Any, kernels: Any) -> None:
    x = torch.ones(8)
    with pytest.raises(ValueError, match=r"Pointer argument \(at 0\) cannot be accessed from Triton \(cpu tensor\?\)"):
        kernels.scale[(1,)](x, 8, 2.0, BLOCK=8)
    pinned = x.pin_memory()
    kernels.scale[(1,)](pinned, 8, 2.0, BLOCK=8)
    torch.cuda.synchronize()
    assert pinned.tolist() == [2.0] * 8


def test_grids_of_no_block_launch_nothing_and_too_large_ones_are_refused(torch: Any, kernels: Any) -> None:
    x = torch.ones(8, device="cuda")
    kernels.scale[(0,)](x, 8, 2.0, BLOCK=8)
    assert x.sum() == 8
    for grid in ((2**31,), (1, 2**16), (1, 1, 2**16)):
        with pytest.raises(RuntimeError, match="invalid argument: a grid of"):
            kernels.scale[grid](x, 8, 2.0, BLOCK=8)


def test_a_function_given_by_the_program_runs_instead(torch: Any, kernels: Any) -> None:
    called: list[Any] = []
    ht.register_kernel("pairs", lambda grid, pair, out: called.append((grid, pair[1])))
    kernels.pairs[(3,)]((None, 2.0), None)
    assert called == [((3,), 2.0)]


def test_F34_a_kernel_runs_on_the_stream_that_it_is_given(torch: Any, kernels: Any, held: Callable[[Any], Any]) -> None:
    side, x = torch.cuda.Stream(), torch.ones(8, device="cuda")
    compiled = kernels.scale.warmup(x, 8, 2.0, BLOCK=8, grid=(1, 1, 1))
    torch.cuda.synchronize()
    gate = held(side)
    compiled[(1, 1, 1)](x, 8, 2.0, 8, stream=side.cuda_stream)
    torch.cuda.default_stream().synchronize()
    assert not side.query()
    gate.open()
    side.synchronize()
    assert x.tolist() == [2.0] * 8


def test_F34_memory_of_another_device_is_refused_in_tritons_words(torch: Any, kernels: Any) -> None:
    other = torch.ones(8, device="cuda:1")
    with pytest.raises(ValueError, match=r"Pointer argument \(at 0\) cannot be accessed from Triton"):
        kernels.scale[(1,)](other, 8, 2.0, BLOCK=8)
    with torch.cuda.device(1):
        kernels.scale[(1,)](other, 8, 2.0, BLOCK=8)
    assert other.sum() == 16


def test_what_a_compiled_kernel_holds_is_as_on_a_gpu(
    torch: Any, kernels: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    x = torch.ones(8, device="cuda")
    found = kernels.scale[(1,)](x, 8, 2.0, BLOCK=8, num_warps=1).asm
    assert ".entry scale(" in found["ptx"]  # text, in which programs look for instructions
    assert found["cubin"].decode() == found["ptx"]
    assert "no machine code" in found["sass"]
    assert {path.name for path in tmp_path.rglob("scale.*")} >= {"scale.ptx", "scale.cubin", "scale.sass"}


def test_a_cache_that_keeps_only_binaries_is_enough(
    torch: Any, kernels: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    x = torch.ones(16, device="cuda")
    kernels.scale[(1,)](x, 16, 2.0, BLOCK=16, num_warps=2)
    assert x.tolist() == [2.0] * 16
    assert not list(tmp_path.rglob("*.ptx"))


def test_launches_on_several_streams(torch: Any, kernels: Any) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    tensors = [torch.ones(64, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for (stream, x), _ in itertools.product(list(zip(streams, tensors, strict=True)), range(3)):
        with torch.cuda.stream(stream):
            kernels.scale[(1,)](x, 64, 2.0, BLOCK=64)
    torch.cuda.synchronize()
    assert [x.sum().item() for x in tensors] == [512.0] * 3


def test_tritons_interpreter_still_works_and_undo_brings_its_backends_back(program: Child) -> None:
    done = program(
        """
        import halstream.torch, triton.backends
        before = dict(triton.backends.backends)
        redirection = halstream.torch.redirect()
        import torch, triton_kernels
        x = torch.ones(4, device="cuda")
        triton_kernels.scale[(1,)](x, 4, 2.0, BLOCK=4)
        print(x.tolist(), type(triton_kernels.scale).__name__)
        redirection.undo()
        print(triton.backends.backends == before)
        """,
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": _path()},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[2.0, 2.0, 2.0, 2.0] InterpretedFunction", "True"]


def test_the_program_may_end_with_a_launch_running(program: Child) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host, torch, triton_kernels
        x = torch.ones(1 << 20, device="cuda")
        for _ in range(20):
            triton_kernels.scale[(1024,)](x, 1 << 20, 1.0, BLOCK=1024)
        """,
        env={"PYTHONPATH": _path()},
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
