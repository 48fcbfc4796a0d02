"""Reports, waits that cannot end and traces in torch's words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import halstream as hs
import pytest

PROGRAMS = Path(__file__).parent


def _net(torch: Any) -> Any:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))
            self.register_buffer("scale", torch.ones(8))

        def forward(self, x: Any) -> Any:
            for one in self.layer:
                x = one(x)
            return x * self.scale

    return Net().cuda()


def _changed_on_another_stream(torch: Any) -> Any:
    """Return the findings for two parameters that change on one stream and are used on another."""
    net, side, x = _net(torch), torch.cuda.Stream(), torch.ones(2, 8, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report, torch.no_grad():
        with torch.cuda.stream(side):
            net.layer[3].weight.mul_(2)
            net.scale.zero_()
        net(x)
        torch.cuda.synchronize()
    return report


def test_F20_memory_of_a_module_has_the_name_of_its_parameter(torch: Any) -> None:
    weight, scale = _changed_on_another_stream(torch)
    assert (weight.parameter, scale.parameter) == ("layer.3.weight", "scale")
    assert "bytes 0 to 255 of `layer.3.weight`, device memory of" in weight.text
    assert (weight.first.operation, weight.second.operation) == ("aten::mul_", "aten::addmm")


def test_gradients_have_the_name_of_their_parameter(torch: Any) -> None:
    net, side = _net(torch), torch.cuda.Stream()
    net(torch.ones(2, 8, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            net.layer[1].bias.grad.mul_(0.5)
        net.layer[1].bias.grad.norm()
        torch.cuda.synchronize()
    (found,) = report
    assert found.parameter == "layer.1.bias.grad"


def _wrapping(torch: Any, inner: Any, attributes: Any = lambda: (["inner"], None)) -> Any:
    """Return a parameter that wraps another tensor and has no memory itself, as DTensor and quantized weights do."""

    class Wrapper(torch.Tensor):  # type: ignore[misc]
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=False
            )

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __tensor_flatten__(self) -> Any:
            return attributes()

        @staticmethod
        def __tensor_unflatten__(inner: Any, *rest: Any) -> Any:
            return Wrapper(inner["inner"])

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.ops.aten.detach.default:  # so that a Parameter of it can be made
                return Wrapper(args[0].inner)
            raise NotImplementedError(str(function))

    return torch.nn.Parameter(Wrapper(inner), requires_grad=False)


def _race_on(torch: Any, memory: Any) -> Any:
    """Return the one finding about a tensor that changes on one stream and is read on another."""
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report, torch.no_grad():
        with torch.cuda.stream(side):
            memory.mul_(2)
        memory.sum()
        torch.cuda.synchronize()
    (found,) = report
    return found


def test_F20_the_memory_inside_of_a_wrapping_parameter_has_its_name(torch: Any) -> None:
    inner, net = torch.ones(8, device="cuda"), torch.nn.Module()
    net.weight = _wrapping(torch, inner)
    found = _race_on(torch, inner)
    assert found.parameter == "weight"
    assert "of `weight`, device memory of" in found.text


def test_a_report_outlives_parameters_that_cannot_be_looked_at(torch: Any) -> None:
    def fail() -> Any:
        raise RuntimeError("no tensors in here")

    inner, net = torch.ones(8, device="cuda"), torch.nn.Module()
    net.broken = _wrapping(torch, torch.ones(8, device="cuda"), fail)
    net.lazy = torch.nn.parameter.UninitializedParameter(device="cuda")
    net.meta = torch.nn.Parameter(torch.ones(8, device="meta"))
    net.register_buffer("seen", inner)
    assert _race_on(torch, inner).parameter == "seen"


def test_a_report_outlives_a_module_that_cannot_be_looked_at(torch: Any) -> None:
    class Closed(torch.nn.Module):  # type: ignore[misc]
        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("not now")

    inner, net, closed = torch.ones(8, device="cuda"), torch.nn.Module(), Closed()
    net.register_buffer("seen", inner)
    assert _race_on(torch, inner).parameter == "seen"
    del closed


def test_F20_a_parametrized_weight_has_the_name_of_its_original(torch: Any) -> None:
    class Doubled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * 2

    net = torch.nn.Linear(4, 4).cuda()
    torch.nn.utils.parametrize.register_parametrization(net, "weight", Doubled())
    assert _race_on(torch, net.parametrizations.weight.original).parameter == "parametrizations.weight.original"


def test_F20_an_operator_has_the_path_of_the_module_that_made_it(torch: Any) -> None:
    weight, scale = _changed_on_another_stream(torch)
    assert (weight.first.module, weight.second.module) == ("", "layer.3")
    assert (scale.second.operation, scale.second.module) == ("aten::mul", "Net")
    assert "aten::addmm in `layer.3` reads on the default stream" in weight.text


def test_F20_an_operator_of_a_backward_pass_has_the_module_of_its_forward_call(torch: Any) -> None:
    net, side, x = _net(torch), torch.cuda.Stream(), torch.ones(2, 8, device="cuda")
    with hs.sanitize(on="collect") as report:
        loss = net(x).sum()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            net.layer[2].weight.data.mul_(2)
        loss.backward()
        torch.cuda.synchronize()
    modules = {found.second.module for found in report if found.second.backward}
    assert modules == {"layer.2"}
    assert "aten::mm (backward) in `layer.2` reads on" in str(report)


def test_F20_a_forward_that_raises_is_left(torch: Any) -> None:
    class Failing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise ValueError("inside")

    net, side, x = _net(torch), torch.cuda.Stream(), torch.ones(2, 8, device="cuda")
    net.layer.append(Failing())
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report, torch.no_grad():
        with pytest.raises(ValueError, match="inside"):
            net(x)
        with torch.cuda.stream(side):
            net.scale.zero_()
        net.scale.sum()
        torch.cuda.synchronize()
    (found,) = report
    assert (found.first.module, found.second.module) == ("", "")


def test_memory_of_no_module_has_no_parameters_name(torch: Any) -> None:
    net, side = _net(torch), torch.cuda.Stream()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        batch = torch.zeros(64, device="cuda")
        with torch.cuda.stream(side):
            batch.mul_(2)
        torch.cuda.synchronize()
    (found,) = report
    assert (found.parameter, found.buffer) == ("", "batch") and len(net.layer) == 4


def test_only_the_programs_own_lines_are_shown(torch: Any) -> None:
    net, side, x = _net(torch), torch.cuda.Stream(), torch.ones(2, 8, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report, torch.no_grad():
        with torch.cuda.stream(side):
            x.mul_(2)
        net(x)
        torch.cuda.synchronize()
    found = report.races[0]
    assert {frame.file for frame in found.places()} == {__file__}
    assert [frame.function.rpartition(".")[2] for frame in found.second.frames][:2] == [
        "forward",
        "test_only_the_programs_own_lines_are_shown",
    ]
    assert "x = one(x)" in found.text


def test_an_operator_of_the_backward_pass_has_the_line_of_its_forward(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(64, device="cuda", requires_grad=True)
    w = torch.full((64,), 3.0, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        loss = (x * w).sum()  # the forward
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            w.data.zero_()
        loss.backward()
        torch.cuda.synchronize()
    (found,) = report
    assert found.second.operation == "aten::mul (backward)" and found.second.backward
    assert "the forward" in _line(found.second.frames[0])
    assert "reads on the default stream, for the forward call" in found.text
    assert found.fix == "torch.cuda.default_stream().wait_stream(side)"
    place = re.search(r"fix: after .*:(\d+)\n", found.text)
    assert place and "w.data.zero_()" in Path(__file__).read_text().splitlines()[int(place[1]) - 1], found.text


def test_an_operator_without_gradient_takes_no_place_from_the_forward_before_it(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(64, device="cuda", requires_grad=True)
    w = torch.full((64,), 3.0, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        y = x * w  # the forward
        w + 1
        loss = y.sum()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            w.data.zero_()
        loss.backward()
        torch.cuda.synchronize()
    (found,) = report
    assert found.second.operation == "aten::mul (backward)"
    assert "the forward" in _line(found.second.frames[0])


def _in_a_hook(torch: Any, x: Any, work: Any) -> Any:
    y = x * 2
    y.register_hook(work)
    return y.sum()


def _in_a_function(torch: Any, x: Any, work: Any) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            work(gradient)
            return gradient * 2

    return Double.apply(x).sum()


def _in_a_recomputation(torch: Any, x: Any, work: Any) -> Any:
    def part(x: Any) -> Any:
        if torch._C._current_graph_task_id() != -1:
            work(x)
        return (x * 2).exp()

    return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False).sum()


@pytest.mark.parametrize("within", [_in_a_hook, _in_a_function, _in_a_recomputation])
def test_python_that_a_backward_pass_calls_is_the_place_of_its_operators(torch: Any, within: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(64, device="cuda", requires_grad=True)
    w = torch.full((64,), 3.0, device="cuda")
    torch.cuda.synchronize()

    def work(gradient: Any) -> None:
        with torch.no_grad():
            w.add_(1)  # in the backward pass

    with hs.sanitize(on="collect") as report:
        loss = within(torch, x, work)
        with torch.cuda.stream(side), torch.no_grad():
            w.zero_()
        loss.backward()
        torch.cuda.synchronize()
    (found,) = report
    assert found.second.operation == "aten::add_" and not found.second.backward
    assert "in the backward pass" in _line(found.second.frames[0])
    assert "before the backward pass" not in found.text


def _line(frame: Any) -> str:
    return Path(frame.file).read_text().splitlines()[frame.line - 1]


LOCAL = """
import {how}


def load(pinned):
    stream = {torch}.cuda.Stream()
    with {torch}.cuda.stream(stream):
        return pinned.to("cuda", non_blocking=True)


def step(batch):
    return (batch * 2).sum()


data = {torch}.ones(64).pin_memory()
batch = load(data)
print(step(batch).item())
"""


@pytest.mark.parametrize(("how", "name"), [("torch", "torch"), ("torch as th", "th")])
def test_the_line_of_a_fix_means_something_where_it_is_put(tmp_path: Path, how: str, name: str) -> None:
    source = LOCAL.format(how=how, torch=name)
    done = _sanitized(tmp_path, source)
    assert done.returncode == 1, done.stderr
    place, line = _fix(done.stderr)
    lines = source.splitlines(keepends=True)
    # Behind a return no line runs, and the stream has no name elsewhere.
    at = next(number for number, text in enumerate(lines, 1) if "return (batch * 2)" in text)
    assert (place, line) == (f"before app.py:{at}", f"{name}.cuda.synchronize()")


EARLY = """
import torch


def fetch(x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        return x.to("cpu", non_blocking=True)


def show(y):
    print(y.sum())


y = fetch(torch.ones(64, device="cuda"))
show(y)
"""


def test_a_host_that_does_not_know_the_stream_is_told_to_wait_for_the_device(tmp_path: Path) -> None:
    done = _sanitized(tmp_path, EARLY)
    assert done.returncode == 1, done.stderr
    place, line = _fix(done.stderr)
    number = int(place.rpartition(":")[2])
    assert place.startswith("before app.py:") and line == "torch.cuda.synchronize()"
    lines = EARLY.splitlines(keepends=True)
    indent = lines[number - 1][: len(lines[number - 1]) - len(lines[number - 1].lstrip())]
    lines.insert(number - 1, f"{indent}{line}\n")
    fixed = _sanitized(tmp_path, "".join(lines))
    assert fixed.returncode == 0 and "unordered" not in fixed.stderr


def _sanitized(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(source)
    command = [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", "app.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=os.environ)


def _fix(text: str) -> tuple[str, str]:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  fix: "))
    return lines[at].removeprefix("  fix: "), lines[at + 1].strip()


def test_a_wait_that_cannot_end_names_torchs_device_and_the_programs_line(torch: Any) -> None:
    s, other = torch.cuda.Stream(), torch.cuda.Stream()
    gate = hs.testing.Gate(hs.Stream.from_handle(s.cuda_stream))
    with torch.cuda.stream(s):
        x = torch.ones(4, device="cuda")
    other.wait_stream(s)
    with torch.cuda.stream(other):
        y = x + 1
    with pytest.raises(hs.StallError) as raised:
        other.synchronize()
    gate.open()
    text = str(raised.value)
    waits, *_ = text.splitlines()[1:]
    assert "waits for stream " in waits and " of cuda:0, at " in waits and Path(__file__).name in waits
    other.synchronize()
    assert y.tolist() == [2, 2, 2, 2]


def test_a_trace_has_operators_ranges_and_the_names_of_streams(torch: Any, tmp_path: Path) -> None:
    from halstream._traces.annotated import annotate
    from halstream._traces.recording import Recording
    from halstream._traces.timeline import lay_out

    recording = Recording()
    loader = torch.cuda.Stream()
    with torch.cuda.nvtx.range("step 1"):
        with torch.cuda.stream(loader):
            batch = torch.ones(4).pin_memory().to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(loader)
        (batch * 2).sum()
    torch.cuda.nvtx.mark("done")
    torch.cuda.synchronize()
    timeline = lay_out(*recording.finish())
    annotate(timeline, recording.annotations)
    shown: dict[str, set[str]] = {}
    for one in timeline.slices:
        shown.setdefault(one.category, set()).add(one.name)
    assert {"aten::copy_", "aten::mul", "aten::sum"} <= shown["stream"]
    assert shown["annotation"] == {"step 1", "done"}
    assert {track.group for track in timeline.tracks if " / " in track.name} == {"cuda:0"}


def test_a_stream_that_a_package_makes_is_called_by_its_place_there(torch: Any, tmp_path: Path) -> None:
    # Of a priority that no other test uses: torch gives the 32 streams of each out again.
    package, program = tmp_path / "site-packages" / "offloadlib" / "__init__.py", tmp_path / "app.py"
    package.parent.mkdir(parents=True)
    package.write_text(
        "import torch\nclass Copier:\n    def __init__(self):\n        self.stream = torch.cuda.Stream(priority=-2)\n"
        "    def fill(self, x):\n        with torch.cuda.stream(self.stream):\n            x.fill_(1)\n"
    )
    source = "copier = Copier()\nx = torch.zeros(4, device='cuda')\ncopier.fill(x)\nx.add_(1)\n"
    names: dict[str, Any] = {"torch": torch}
    exec(compile(package.read_text(), str(package), "exec"), names)
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        exec(compile(source, str(program), "exec"), names)
        torch.cuda.synchronize()
    made = f"(made at offloadlib/__init__.py:4, called from {program}:1)"
    assert made in report.races[-1].text, report.races[-1].text


def test_a_line_that_only_a_package_can_have_is_said_to_be_the_packages(torch: Any, tmp_path: Path) -> None:
    package, program = tmp_path / "site-packages" / "offloadlib" / "__init__.py", tmp_path / "app.py"
    package.parent.mkdir(parents=True)
    package.write_text(
        "import threading\nimport torch\n"
        "def work(x, side):\n    x.add_(1)\n    with torch.cuda.stream(side):\n        x.mul_(2)\n"
        "def start(x):\n    thread = threading.Thread(target=work, args=(x, torch.cuda.Stream()))\n"
        "    thread.start()\n    thread.join(60)\n"
    )
    names: dict[str, Any] = {}
    exec(compile(package.read_text(), str(package), "exec"), names)
    names["x"] = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        exec(compile("start(x)\n", str(program), "exec"), names)
        torch.cuda.synchronize()
    (found,) = report.races
    fix = next(line for line in found.text.splitlines() if line.startswith("  fix: "))
    assert fix.endswith("offloadlib/__init__.py:6 (in the package offloadlib, not in the program)"), found.text
