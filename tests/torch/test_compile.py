"""torch.compile on the redirected device: torch's own compiler, whose kernels run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from conftest import Child

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile anew in each test."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def launched(torch: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each launch of a compiled kernel adds its name."""
    from halstream.torch._redirect.triton import _Launcher

    names: list[str] = []
    launch = _Launcher._enqueue

    def noted(self: Any, *args: Any) -> None:
        names.append(self._metadata.name)
        launch(self, *args)

    monkeypatch.setattr(_Launcher, "_enqueue", noted)
    return names


def _both(torch: Any, function: Callable[..., Any], *inputs: Any, **options: Any) -> list[list[Any]]:
    """Return results and gradients of a function, run as it is and compiled."""
    found = []
    for called in (function, torch.compile(function, **options)):
        given = [x.clone().detach().requires_grad_(x.is_floating_point()) for x in inputs]
        result = called(*given)
        (result.float() * torch.arange(result.numel(), device="cuda").reshape(result.shape).cos()).sum().backward()
        found.append([result.detach(), *(x.grad for x in given if x.grad is not None)])
    return found


def test_F35_a_function_and_its_backward_run_by_generated_kernels(torch: Any, launched: list[str]) -> None:
    x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")
    eager, compiled = _both(torch, lambda x, y: torch.softmax(x * 2 + y.sin(), -1).sum(0), x, y)
    for one, other in zip(eager, compiled, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert len(launched) >= 2 and all(name.startswith("triton_") for name in launched)


def test_a_transformer_layer_trains_alike(torch: Any, launched: list[str]) -> None:
    torch.manual_seed(3)
    layers = [torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True).cuda() for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    called = [layers[0], torch.compile(layers[1])]
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9) for layer in layers]
    for _ in range(3):
        x = torch.randn(2, 8, 32, device="cuda")
        for layer, optimizer in zip(called, optimizers, strict=True):
            optimizer.zero_grad()
            layer(x).pow(2).mean().backward()
            optimizer.step()
    assert launched
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_dynamic_shapes_are_compiled_once(torch: Any, launched: list[str]) -> None:
    compiled = torch.compile(lambda x: (x + 1).relu().sum(), dynamic=True)
    for size in (7, 100, 1000):
        x = torch.randn(size, device="cuda")
        assert torch.allclose(compiled(x), (x + 1).relu().sum())
    assert len(set(launched)) == 1


def test_F35_reduce_overhead_replays_graphs_in_trees(torch: Any) -> None:
    from torch._inductor import config, cudagraph_trees

    def chosen(kind: int) -> Any:
        return torch.compile(lambda x: x.sin() * 3 if kind else x.cos() * 2, mode="reduce-overhead")

    begin, branches = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead"), [chosen(0), chosen(1)]
    x = torch.randn(100, device="cuda")
    with config.patch({"triton.slow_path_cudagraph_asserts": True}), torch.no_grad():
        for turn in range(8):
            torch.compiler.cudagraph_mark_step_begin()
            kind = turn % 2
            result = branches[kind](begin(x))
            expected = x * 2 + 1
            expected = expected.sin() * 3 if kind else expected.cos() * 2
            assert torch.allclose(result, expected, atol=1e-5)
            del result
    manager = cudagraph_trees.get_manager(0, create_if_none_exists=False)
    (root,) = [node for nodes in manager.roots.values() for node in nodes]
    children = [node for nodes in root.children.values() for node in nodes]
    assert len(children) == 2 and all(node.graph is not None for node in (root, *children))
    assert manager.debug_checkpointing_counter >= 1


def test_a_result_that_the_next_replay_overwrites_is_refused(torch: Any) -> None:
    compiled = torch.compile(lambda x: x * 2, mode="reduce-overhead")
    x = torch.ones(10, device="cuda")
    with torch.no_grad():
        kept = compiled(x)
        compiled(x)
        with pytest.raises(RuntimeError, match="overwritten by a subsequent"):
            kept.sum()


def test_F36_max_autotune_takes_a_first_choice_without_running_all(torch: Any, launched: list[str]) -> None:
    a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")

    def function(a: Any, b: Any) -> Any:
        return torch.softmax((a @ b).relu(), -1).sum(0)

    with torch.no_grad():
        compiled = torch.compile(function, mode="max-autotune-no-cudagraphs")(a, b)
    assert torch.allclose(compiled, function(a, b), atol=1e-4)
    assert launched and len(set(launched)) == len(launched)


def test_max_autotune_with_graphs(torch: Any) -> None:
    x = torch.randn(64, 64, device="cuda")
    compiled = torch.compile(lambda x: (x @ x).relu(), mode="max-autotune")
    with torch.no_grad():
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            assert torch.allclose(compiled(x), (x @ x).relu(), atol=1e-4)


def test_a_template_of_a_matrix_product_runs(torch: Any, launched: list[str]) -> None:
    from torch._inductor import config

    a, b = (torch.randint(-3, 4, (64, 64), device="cuda").half() for _ in range(2))
    with config.patch(max_autotune_gemm_backends="TRITON", max_autotune=True), torch.no_grad():
        assert torch.equal(torch.compile(lambda a, b: a @ b)(a, b), a @ b)
    assert any("mm" in name for name in launched)


def test_flex_attention_equals_attention(torch: Any) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (torch.randn(1, 2, 128, 32, device="cuda") for _ in range(3))
    compiled = torch.compile(flex_attention)(q, k, v)
    assert torch.allclose(compiled, torch.nn.functional.scaled_dot_product_attention(q, k, v), atol=2e-3)


def test_a_missing_wait_before_a_compiled_function_is_reported(torch: Any) -> None:
    side, x = torch.cuda.Stream(), torch.ones(64, device="cuda")
    compiled = torch.compile(lambda x: (x * 2 + 1).sum())
    compiled(x)
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            x.mul_(3)
        compiled(x)
        torch.cuda.synchronize()
    (found,) = report.races
    assert found.second.operation.startswith("triton_") and f"{Path(__file__).name}:" in found.text
    assert ".run(" in found.text and "<string>" not in found.text  # the line of the code that the compiler wrote
    assert "torch.cuda.default_stream().wait_stream(side)" in found.text


@pytest.mark.filterwarnings("error:Using `torch.compile:UserWarning")
def test_modules_are_compiled_under_the_sanitizer(torch: Any, launched: list[str]) -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True).cuda()
    with hs.sanitize(on="collect") as report:
        compiled, optimizer = torch.compile(layer), torch.optim.AdamW(layer.parameters())
        for _ in range(3):
            x = torch.randn(2, 8, 32, device="cuda")
            optimizer.zero_grad()
            compiled(x).sum().backward()
            optimizer.step()
        torch.cuda.synchronize()
    assert launched and not report.all, str(report)


def test_a_compiled_function_that_reads_what_nobody_wrote_is_reported(torch: Any) -> None:
    compiled = torch.compile(lambda x: x * 2)
    with hs.sanitize(on="collect") as report:
        compiled(torch.empty(64, device="cuda"))
        torch.cuda.synchronize()
    (found,) = report.all
    assert "Uninitialized __global__ memory read of size 256 bytes" in found.text


def test_F35_streams_inside_a_compiled_function_order_its_kernels(torch: Any) -> None:
    side = torch.cuda.Stream()

    def function(x: Any) -> Any:
        y = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = y.sin()
        torch.cuda.current_stream().wait_stream(side)
        return z + 1

    x = torch.randn(64, device="cuda")
    with hs.sanitize(on="collect") as report:
        assert torch.allclose(torch.compile(function)(x), (x * 2).sin() + 1, atol=1e-5)
        torch.cuda.synchronize()
    assert not report.races, str(report)


def test_a_setting_runs_eagerly_and_says_so(program: Child) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host, torch, warnings
        warnings.simplefilter("always")
        from torch import _dynamo
        double = torch.compile(lambda x: x * 2)
        print(double(torch.ones(2, device="cuda")).tolist(), _dynamo.utils.counters["stats"]["unique_graphs"])
        """,
        env={"HALSTREAM_TORCH_COMPILE": "eager"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[2.0, 2.0] 0"
    assert "HALSTREAM_TORCH_COMPILE is 'eager'" in done.stderr


def test_another_value_of_the_setting_is_refused(program: Child) -> None:
    done = program("import halstream.torch.cuda_on_host", env={"HALSTREAM_TORCH_COMPILE": "no"})
    assert done.returncode != 0 and "give 'eager', or leave it out" in done.stderr


def test_functions_that_a_wheel_without_cuda_lacks_do_what_torchs_do(torch: Any) -> None:
    from halstream.torch._redirect.inductor import same_addresses, tensor_over

    x = torch.arange(12.0, device="cuda").reshape(3, 4).t()
    about = {
        "dtype": x.dtype, "device": x.device, "size": x.shape, "stride": x.stride(), "storage_offset": 1,
        "nbytes": 48, "data_ptr": x.data_ptr(),
    }  # fmt: skip
    about["size"] = (4, 2)
    if hasattr(torch._C, "_construct_CUDA_Tensor_From_Storage_And_Metadata"):
        theirs = torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata(about, x.untyped_storage())
        assert torch.equal(tensor_over(torch, about, x.untyped_storage()), theirs)
    y = torch.ones(2, device="cuda")
    for addresses, same in (([x.data_ptr(), y.data_ptr()], True), ([x.data_ptr(), x.data_ptr()], False)):
        assert same_addresses([x, y], addresses, [0, 1]) == same
        assert same_addresses([x, y], addresses, [0])
        assert torch._C._tensors_data_ptrs_at_indices_equal([x, y], addresses, [0, 1]) == same
