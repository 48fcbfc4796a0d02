"""A walk through torch's table of operators: on the device each one runs, or is refused by its name."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Child

#: Kernels for CUDA that call no CUDA: collectives go to the process group, and these are functions in Python.
MADE_OF_OTHERS = ("c10d::", "_native::")
KEYS = ("CUDA", "SparseCUDA", "SparseCsrCUDA", "NestedTensorCUDA", "QuantizedCUDA")


def _kernels(torch: Any) -> Iterator[tuple[str, str, str]]:
    """Yield operator, key and place of registration of each kernel that a tensor on the device would take."""
    for name in torch._C._dispatch_get_all_op_names():
        for line in torch._C._dispatch_dump(name).splitlines():
            found = re.match(r"(\w+): registered at (\S+)", line)
            if found and found[1] in KEYS:
                yield name, found[1], found[2]


def test_no_kernel_of_a_cuda_source_is_left(torch: Any) -> None:
    left = [name for name, _, place in _kernels(torch) if re.search(r"\.cu(:|$)", place)]
    assert [name for name in left if not name.startswith("c10d::")] == []


def test_kernels_beside_aten_are_those_of_the_device_or_of_python(torch: Any) -> None:
    left = {
        name
        for name, _, place in _kernels(torch)
        if not name.startswith(("aten::", *MADE_OF_OTHERS)) and "takeover.cpp" not in place and ".py:" not in place
    }
    assert left == set()


def _declared(torch: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each operator of torch's declarations, which a wheel brings, with its functions by dispatch key."""
    path = Path(torch.__file__).parent.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
    if not path.exists():
        pytest.skip("this torch has no torchgen")
    name, functions = "", dict[str, str]()
    for line in path.read_text().splitlines():
        if line.startswith("- func: "):
            if name:
                yield name, functions
            name, functions = "aten::" + line[8:].partition("(")[0], {}
        elif found := re.match(r"    ([\w, ]+): (\w+)", line):
            functions.update(dict.fromkeys((key.strip() for key in found[1].split(",")), found[2]))
    yield name, functions


@pytest.mark.parametrize("layout", ["Sparse", "SparseCsr", "NestedTensor", "Quantized"])
def test_kernels_of_layouts_that_cuda_has_for_itself_are_replaced(torch: Any, layout: str) -> None:
    of_device = {name for name, key, place in _kernels(torch) if key == f"{layout}CUDA" and "takeover.cpp" in place}
    own = {
        name
        for name, functions in _declared(torch)
        if f"{layout}CUDA" in functions and functions.get(f"{layout}CPU") != functions[f"{layout}CUDA"]
    }
    assert len(own) > 5
    by_hand = {"aten::_fused_sdp_choice"}
    assert own - of_device - by_hand == set()


def _values(torch: Any, schema: Any, dense: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments that an operator may take or refuse: tensors on the device and small numbers."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument in schema.arguments:
        kind = str(argument.type)
        if argument.has_default_value() and "Tensor" not in kind:
            continue
        value: Any = {
            "Tensor": dense, "List[Tensor]": [dense, dense], "int": 1, "SymInt": 1, "float": 1.0, "number": 1.0,
            "bool": False, "str": "sum", "List[int]": [1], "List[SymInt]": [1],
        }.get(kind)  # fmt: skip
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return positional, named


def test_what_torch_brings_beside_aten_calls_no_driver(torch: Any) -> None:
    """Most calls are wrong in some way; what they raise is torch's word on that, or the refusal by name."""
    dense = torch.ones(4, 4, device="cuda")
    names = {name for name, _, place in _kernels(torch) if "takeover.cpp" in place and not name.startswith("aten::")}
    assert len(names) > 30
    refused = 0
    for name in sorted(names):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        operator = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        positional, named = _values(torch, operator._schema, dense)
        try:
            operator(*positional, **named)
            torch.cuda.synchronize()
        except Exception as error:
            assert "driver" not in str(error), name
            refused += f"{name} is not supported on halstream's CUDA device" in str(error)
            if isinstance(error, torch.AcceleratorError):
                from halstream import testing

                testing.recover()
    assert refused > 20


def test_gradients_of_two_types_are_put_together(torch: Any) -> None:
    """What FSDP2 calls where the gradients of a group have several types."""
    parts = [torch.arange(8.0, device="cuda").view(4, 2), torch.ones(4, device="cuda", dtype=torch.bfloat16)]
    out = torch.empty(2, 6, device="cuda")
    torch.ops.fsdp.chunk_cat_mixed_dtype(parts, 0, 2, out=out)
    assert out.tolist() == [[0.0, 1.0, 2.0, 3.0, 1.0, 1.0], [4.0, 5.0, 6.0, 7.0, 1.0, 1.0]]


@pytest.mark.usefixtures("recovers")
def test_a_number_that_is_none_is_found(torch: Any) -> None:
    torch.ops.c10d.check_for_nan(torch.ones(2, device="cuda"))
    torch.cuda.synchronize()
    torch.ops.c10d.check_for_nan(torch.tensor([1.0, float("nan")], device="cuda"))
    with pytest.raises(torch.AcceleratorError, match="NaN"):
        torch.cuda.synchronize()


def test_symmetric_memory_is_refused_by_name(torch: Any) -> None:
    x = torch.ones(2, device="cuda")
    with pytest.raises(NotImplementedError, match="symm_mem::one_shot_all_reduce is not supported on halstream's"):
        torch.ops.symm_mem.one_shot_all_reduce(x, "sum", "0")


def test_a_kernel_that_a_program_registers_for_cuda_is_called(torch: Any) -> None:
    seen: list[str] = []
    library = torch.library.Library("halstream_tests", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: seen.append("cpu") or x * 2, "CPU")
    library.impl("twice", lambda x: seen.append("cuda") or x * 2, "CUDA")
    assert torch.ops.halstream_tests.twice(torch.ones(2, device="cuda")).tolist() == [2.0, 2.0]
    assert seen == ["cuda"]


SPECS = """
def get_cuda_specs():
    return "a GPU"
"""

PACKAGE = """
import torch
from . import cuda_specs
def define(name, schema, *keys):
    torch.library.define("bitsandbytes::" + name, schema)
    for key in keys:
        torch.library.impl("bitsandbytes::" + name, key)(made[key])
made = {"CPU": lambda x: x + 1, "CUDA": lambda x: 1 / 0, "CompositeExplicitAutograd": lambda x: x + 2}
define("both", "(Tensor x) -> Tensor", "CPU", "CUDA")
define("written_once", "(Tensor x) -> Tensor", "CompositeExplicitAutograd", "CUDA")
define("for_cuda", "(Tensor x) -> Tensor", "CUDA")
for name in ("both", "written_once", "for_cuda"):
    torch.library.register_fake("bitsandbytes::" + name, torch.empty_like)
"""

BY_ITS_CPU_KERNELS = """
import halstream as hs
import halstream.torch.cuda_on_host
import torch
import bitsandbytes
assert bitsandbytes.cuda_specs.get_cuda_specs() is None, "it would load its library for CUDA"
x = torch.ones(2, device="cuda")
operators = torch.ops.bitsandbytes
assert operators.both(x).tolist() == [2, 2]
assert operators.written_once(x).tolist() == [3, 3]
try:
    operators.for_cuda(x)
except NotImplementedError as refused:
    assert "bitsandbytes::for_cuda is not supported on halstream's CUDA device" in str(refused)
else:
    raise AssertionError("called CUDA's")
side = torch.cuda.Stream()
torch.cuda.synchronize()
with hs.sanitize(on="collect") as report:
    x.mul_(2)
    with torch.cuda.stream(side):
        operators.both(x)
    torch.cuda.synchronize()
assert report.races and "bitsandbytes::both" in str(report), str(report)
"""


def test_a_package_that_calls_a_library_of_cuda_runs_by_its_cpu_kernels(program: Child, tmp_path: Path) -> None:
    """A stand-in for bitsandbytes: its names, and functions of which those for CUDA would end the program."""
    package = tmp_path / "bitsandbytes"
    package.mkdir()
    (package / "cuda_specs.py").write_text(SPECS)
    (package / "__init__.py").write_text(PACKAGE)
    done = program(f"import sys; sys.path.insert(0, {str(tmp_path)!r})" + BY_ITS_CPU_KERNELS)
    assert done.returncode == 0, done.stderr


QUANTIZED_LAYERS = """
import halstream.torch.cuda_on_host
import torch
import bitsandbytes as bnb
torch.manual_seed(0)
plain = torch.nn.Linear(64, 32)
x = torch.randn(4, 64)
wanted = plain(x)
eight = bnb.nn.Linear8bitLt(64, 32, has_fp16_weights=False, threshold=6.0)
four = bnb.nn.Linear4bit(64, 32, quant_type="nf4", compute_dtype=torch.float16)
for layer, type_name, limit in ((eight, torch.int8, 0.05), (four, torch.uint8, 0.5)):
    layer.load_state_dict(plain.state_dict())
    layer.cuda()
    assert layer.weight.dtype == type_name
    given = x.cuda().half().requires_grad_()
    found = layer(given)
    assert (found.float().cpu() - wanted).abs().max() < limit
    found.float().sum().backward()
    assert given.grad.shape == x.shape
weight = torch.nn.Parameter(torch.ones(128, 64, device="cuda"))
optimizer = bnb.optim.Adam8bit([weight], lr=0.01)
for _ in range(3):
    weight.square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
assert 0.96 < weight.mean().item() < 0.98
"""


def test_layers_and_optimizers_of_bitsandbytes(program: Child) -> None:
    if importlib.util.find_spec("bitsandbytes") is None:
        pytest.skip("bitsandbytes is not installed")
    done = program(QUANTIZED_LAYERS)
    assert done.returncode == 0, done.stderr
