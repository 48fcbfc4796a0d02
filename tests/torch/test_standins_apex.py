"""The stand-ins for apex and for DeepSpeed's operators, against torch's optimizers and norms on the CPU."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import pytest


def stepped(torch: Any, make: Any, device: str, steps: int = 4, dtype: Any = None) -> list[Any]:
    """Return two parameters after some steps of an optimizer, with gradients that do not depend on it."""
    torch.manual_seed(3)
    params = [torch.randn(5, 3).to(dtype or torch.float32).to(device).requires_grad_() for _ in range(2)]
    optimizer = make(params)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(5, 3).to(p.dtype).to(device)
        optimizer.step()
    return [p.detach().cpu() for p in params]


@pytest.mark.parametrize("decoupled", [True, False])
def test_adam_is_torchs(torch: Any, decoupled: bool) -> None:
    from apex.optimizers import FusedAdam  # type: ignore[import-not-found]

    theirs = torch.optim.AdamW if decoupled else torch.optim.Adam
    found = stepped(torch, lambda p: FusedAdam(p, 0.1, adam_w_mode=decoupled, weight_decay=0.1), "cuda")
    expected = stepped(torch, lambda p: theirs(p, 0.1, weight_decay=0.1), "cpu")
    torch.testing.assert_close(found, expected)
    half = stepped(
        torch, lambda p: FusedAdam(p, 0.1, adam_w_mode=decoupled, weight_decay=0.1), "cuda", 4, torch.bfloat16
    )
    torch.testing.assert_close([one.float() for one in half], expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True}], ids=str
)
def test_sgd_is_torchs(torch: Any, options: dict[str, Any]) -> None:
    from apex.optimizers import FusedSGD

    found = stepped(torch, lambda p: FusedSGD(p, 0.1, **options), "cuda")
    torch.testing.assert_close(found, stepped(torch, lambda p: torch.optim.SGD(p, 0.1, **options), "cpu"))


def test_adagrad_is_torchs(torch: Any) -> None:
    from apex.optimizers import FusedAdagrad

    found = stepped(torch, lambda p: FusedAdagrad(p, 0.1, weight_decay=0.1), "cuda")
    torch.testing.assert_close(found, stepped(torch, lambda p: torch.optim.Adagrad(p, 0.1, weight_decay=0.1), "cpu"))


def test_lamb_scales_updates_by_the_ratio_of_norms(torch: Any) -> None:
    from apex.optimizers import FusedLAMB

    class Lamb(torch.optim.Optimizer):  # type: ignore[misc,name-defined]
        """LAMB for one parameter at a time, by its formulas."""

        def __init__(self, params: Any) -> None:
            super().__init__(params, {})
            self.steps = 0

        def step(self) -> None:  # type: ignore[override]
            self.steps += 1
            params = self.param_groups[0]["params"]
            norm = torch.cat([p.grad.flatten() for p in params]).norm()
            for p in params:
                state, grad = self.state[p], p.grad / max(norm.item(), 1.0)
                m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * grad
                v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * grad**2
                update = (m / (1 - 0.9**self.steps)) / ((v / (1 - 0.999**self.steps)).sqrt() + 1e-6) + 0.01 * p.data
                p.data -= 0.1 * p.data.norm() / update.norm() * update

    found = stepped(torch, lambda p: FusedLAMB(p, 0.1), "cuda")
    torch.testing.assert_close(found, stepped(torch, Lamb, "cpu"), rtol=1e-4, atol=1e-5)


def test_a_learning_rate_of_a_group_and_a_schedule_hold(torch: Any) -> None:
    from apex.optimizers import FusedAdam

    weight = torch.ones(2, device="cuda", requires_grad=True)
    optimizer = FusedAdam([{"params": [weight], "lr": 1.0}])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.0)
    for _ in range(2):
        weight.sum().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    assert weight.grad is None and optimizer.state_dict()["param_groups"][0]["step"] == 2
    torch.testing.assert_close(weight.detach(), torch.zeros(2, device="cuda"))
    with pytest.raises(NotImplementedError, match=r"FusedAdam\(capturable=True\).*torch\.optim\.AdamW"):
        FusedAdam([weight], capturable=True)


def test_kernels_over_lists_of_tensors(torch: Any) -> None:
    import amp_C  # type: ignore[import-not-found]
    from apex.multi_tensor_apply import multi_tensor_applier as apply  # type: ignore[import-not-found]

    flag = torch.zeros(1, dtype=torch.int32, device="cuda")
    xs = [torch.randn(4, device="cuda"), torch.randn(2, 3, dtype=torch.float16, device="cuda")]
    outs = [torch.empty(one.shape, device="cuda") for one in xs]
    apply(amp_C.multi_tensor_scale, flag, [xs, outs], 3.0)
    torch.testing.assert_close(outs, [3 * one.float() for one in xs])
    apply(amp_C.multi_tensor_axpby, flag, [xs, outs, outs], 2.0, -1.0, -1)
    torch.testing.assert_close(outs, [-one.float() for one in xs])
    norm, each = apply(amp_C.multi_tensor_l2norm, flag, [outs], True)
    torch.testing.assert_close(norm, torch.cat([one.flatten() for one in outs]).norm().view(1))
    torch.testing.assert_close(each, torch.stack([one.norm() for one in outs]))
    assert apply(amp_C.multi_tensor_l2norm, flag, [outs], False)[1].numel() == 0 and flag.item() == 0
    half = torch.tensor(0.5, device="cuda")
    torch.testing.assert_close(apply(amp_C.multi_tensor_unscale_l2norm, flag, [outs], half)[0], norm / 2)
    xs[1][0, 0] = float("inf")
    apply(amp_C.multi_tensor_axpby, flag, [xs, outs, outs], 1.0, 1.0, 1)
    assert flag.item() == 0  # only the second list is looked at
    apply(amp_C.multi_tensor_scale, flag, [xs, outs], 1.0)
    assert flag.item() == 1
    p, g, momentum = (torch.ones(2, device="cuda") for _ in range(3))
    apply(amp_C.multi_tensor_sgd, flag, [[g], [p], [momentum]], 0.0, 0.9, 0.0, 0.1, False, True, False, 1.0)
    assert p.tolist() == [1, 1]  # the flag forbids it


def test_the_capturable_kernel_skips_a_step_by_its_flag(torch: Any) -> None:
    import amp_C

    flag = torch.zeros(1, dtype=torch.int32, device="cuda")
    step, rate, inverse = torch.ones(1, dtype=torch.int32).cuda(), torch.tensor(0.1).cuda(), torch.tensor([0.5]).cuda()
    g, p, m, v = (torch.full((2,), x, device="cuda") for x in (4.0, 1.0, 0.0, 0.0))
    rest = (rate, 0.9, 0.999, 1e-8, step, 1, 1, 0.0, inverse)
    amp_C.multi_tensor_adam_capturable(65536, flag, [[g], [p], [m], [v]], *rest)
    torch.testing.assert_close(p, torch.full((2,), 0.9, device="cuda"))
    assert g.tolist() == [2, 2]
    flag.fill_(1)
    amp_C.multi_tensor_adam_capturable(65536, flag, [[g], [p], [m], [v]], *rest)
    assert g.tolist() == [2, 2] and p[0].item() > 0.85


@pytest.mark.parametrize("affine", [True, False])
def test_norms_are_torchs(torch: Any, affine: bool) -> None:
    from apex.normalization import FusedLayerNorm, FusedRMSNorm, MixedFusedRMSNorm

    F = torch.nn.functional
    x = torch.randn(4, 2, 3, device="cuda", requires_grad=True)
    for made, function in ((FusedLayerNorm, F.layer_norm), (FusedRMSNorm, F.rms_norm)):
        norm = made((2, 3), elementwise_affine=affine).cuda()
        weights = [torch.nn.init.uniform_(one) for one in norm.parameters()]
        rest = weights if affine else []
        expected = function(x, (2, 3), *rest, eps=1e-5)
        torch.testing.assert_close(norm(x), expected)
        torch.testing.assert_close(
            torch.autograd.grad(norm(x).square().sum(), (x, *rest)),
            torch.autograd.grad(expected.square().sum(), (x, *rest)),
        )
    half = torch.randn(2, 8, dtype=torch.float16, device="cuda")
    assert MixedFusedRMSNorm(8).cuda()(half).dtype == torch.float32
    with pytest.raises(RuntimeError, match="expected scalar type"):
        FusedRMSNorm(8).cuda()(half)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert FusedRMSNorm(8).cuda()(half).dtype == torch.bfloat16


def test_the_compiled_norms_of_an_installed_apex(torch: Any) -> None:
    import fused_layer_norm_cuda as compiled  # type: ignore[import-not-found]

    F = torch.nn.functional
    x, weight, bias, grad = (torch.randn(*s, device="cuda") for s in ((3, 8), (8,), (8,), (3, 8)))
    out, mean, inverse = compiled.forward_affine(x, (8,), weight, bias, 1e-5)
    torch.testing.assert_close(mean, x.mean(-1))
    torch.testing.assert_close(inverse, (x.var(-1, correction=0) + 1e-5).rsqrt())
    leaves = [one.clone().requires_grad_() for one in (x, weight, bias)]
    expected = F.layer_norm(leaves[0], (8,), *leaves[1:])
    torch.testing.assert_close(out, expected)
    found = compiled.backward_affine(grad, mean, inverse, x, (8,), weight, bias, 1e-5, False)
    torch.testing.assert_close(found, list(torch.autograd.grad(expected, leaves, grad)))
    out, inverse = compiled.rms_forward(x, (8,), 1e-5)
    torch.testing.assert_close(out, F.rms_norm(x, (8,), eps=1e-5))
    expected = F.rms_norm(leaves[0], (8,), eps=1e-5)
    torch.testing.assert_close(
        compiled.rms_backward(grad, inverse, x, (8,), 1e-5), torch.autograd.grad(expected, leaves[0], grad)[0]
    )
    with pytest.raises(NotImplementedError, match="memory_efficient"):
        compiled.rms_backward(grad, inverse, x, (8,), 1e-5, True)


def test_a_missing_wait_before_a_step_is_reported(torch: Any) -> None:
    from apex.optimizers import FusedAdam

    weight, side = torch.ones(64, device="cuda", requires_grad=True), torch.cuda.Stream()
    optimizer = FusedAdam([weight])
    for waits in (True, False):
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            weight.grad = torch.full_like(weight, 2.0)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                optimizer.step()
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)


# -- DeepSpeed ----------------------------------------------------------------------


@pytest.fixture
def builders(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a builder's class like DeepSpeed's, in a package of its name."""
    path = tmp_path / "deepspeed" / "ops"
    for folder in ("op_builder", "adam", "lamb"):
        (path / folder).mkdir(parents=True)
        (path / folder / "__init__.py").write_text("")
    for folder in (path, path.parent):
        (folder / "__init__.py").write_text("")
    (path / "op_builder" / "builder.py").write_text(
        "class OpBuilder:\n"
        "    def __init__(self, name):\n"
        "        self.name = name\n"
        "    def load(self, verbose=True):\n"
        "        if self.name == 'real':\n"
        "            return 'the real one'\n"
        "        raise RuntimeError('Unable to JIT load the op')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # The hook looks at the first import of the process only.
    from halstream.torch._redirect.patches import Patches
    from halstream.torch._standins import _deepspeed

    patches = Patches()
    module = importlib.import_module("deepspeed.ops.op_builder.builder")
    if not hasattr(module.OpBuilder.load, "__wrapped__"):
        _deepspeed.changes(patches)["deepspeed.ops.op_builder.builder"](module)
    yield module.OpBuilder
    patches.undo()
    for name in [one for one in sys.modules if one.partition(".")[0] == "deepspeed"]:
        del sys.modules[name]


def test_builders_load_the_stand_ins_and_try_what_has_none(torch: Any, builders: Any) -> None:
    assert builders("real").load() == "the real one"
    with pytest.raises(RuntimeError, match="Unable to JIT load"):
        builders("transformer").load()
    adam = builders("fused_adam").load()
    assert isinstance(adam, types.ModuleType)
    g, p, m, v = (torch.full((2,), x, device="cuda") for x in (2.0, 1.0, 0.0, 0.0))
    flag = torch.zeros(1, dtype=torch.int32, device="cuda")
    adam.multi_tensor_adam(65536, flag, [[g], [p], [m], [v]], 0.1, 0.9, 0.999, 1e-8, 1, 1, 1, 0.0)
    torch.testing.assert_close(p, torch.full((2,), 0.9, device="cuda"))


def test_adam_on_the_host_is_torchs(torch: Any, builders: Any) -> None:
    cpu_adam = builders("cpu_adam").load()
    cpu_adam.create_adam(5, 0.1, 0.9, 0.999, 1e-8, 0.1, True, False)

    class Adam(torch.optim.Optimizer):  # type: ignore[misc,name-defined]
        """DeepSpeed's optimizer in short."""

        def step(self) -> None:  # type: ignore[override]
            for p in self.param_groups[0]["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, m=torch.zeros_like(p.data), v=torch.zeros_like(p.data))
                state["step"] += 1
                rest = (p.data, p.grad.data, state["m"], state["v"])
                cpu_adam.adam_update(5, state["step"], 0.1, 0.9, 0.999, 1e-8, 0.1, True, *rest)

    found = stepped(torch, lambda p: Adam(p, {}), "cpu")
    torch.testing.assert_close(found, stepped(torch, lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1), "cpu"))
    cpu_adam.destroy_adam(5)


def test_lamb_returns_its_ratio_within_limits(torch: Any, builders: Any) -> None:
    lamb = builders("fused_lamb").load().lamb
    p, m, v, g = (torch.full((4,), x, device="cuda") for x in (3.0, 0.0, 0.0, 2.0))
    copy = torch.empty(4, dtype=torch.float16, device="cuda")
    ratio = lamb(p, copy, m, v, g, 0.1, 0.9, 0.999, 2.0, 0.01, 1e-8, 2.0, 1, 1, 0, 0.5)
    update = 0.1 / (0.001**0.5) + 0.5 * 3.0
    torch.testing.assert_close(ratio, torch.tensor([3.0 / update], device="cuda"))
    torch.testing.assert_close(p, torch.full((4,), 3.0 - 0.1 * 3.0, device="cuda"), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(copy.float(), p, rtol=1e-2, atol=1e-2)
    ratio = lamb(p, copy.new_empty(0), m, v, g, 0.1, 0.9, 0.999, 0.2, 0.01, 1e-8, 2.0, 1, 1, 0, 0.5)
    torch.testing.assert_close(ratio, torch.tensor([0.2], device="cuda"))


def test_amp_is_refused_with_what_to_do(torch: Any) -> None:
    from apex import amp  # as programs do wherever apex is found

    with pytest.raises(
        NotImplementedError, match=r"apex\.amp\.initialize; use torch\.autocast and torch\.amp\.GradScaler"
    ):
        amp.initialize(None, None, opt_level="O1")
