"""How programs find the stand-ins for compiled packages: where nothing else is found, while torch is redirected."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import pytest

LINE = "halstream: flash_attn is not installed; a stand-in that computes on torch's operators serves flash_attn_func"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Return a function that writes a module into a folder of the path."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        return path

    yield write
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("flash_attn_2_cuda", "half_installed", "vllm"):
            del sys.modules[name]


def test_a_stand_in_says_so_once_and_goes_with_the_redirection(program: Any) -> None:
    done = program(
        """
        import importlib.metadata, importlib.util, sys, halstream.torch, torch
        def there():
            return importlib.util.find_spec("flash_attn") is not None
        before = there()
        with halstream.torch.redirect():
            print(before, there(), importlib.metadata.version("flash-attn"))
            print(importlib.metadata.packages_distributions()["flash_attn"])
            import flash_attn.bert_padding, flash_attn.layers.rotary
            kept = flash_attn.flash_attn_func
        print([name for name in sys.modules if name.partition(".")[0] == "flash_attn"])
        print(there())
        try:
            import flash_attn
        except ModuleNotFoundError as exc:
            print(exc)
        with halstream.torch.redirect():
            import flash_attn
            q = torch.ones(1, 2, 1, 8, dtype=torch.float16, device="cuda")
            print(kept(q, q, q).sum().item(), flash_attn.flash_attn_func(q, q, q).sum().item())
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "False True 2.8.4",
        "['flash-attn']",
        "[]",
        "False",
        "No module named 'flash_attn'",
        "16.0 16.0",
    ]
    assert done.stderr.count(LINE) == 2  # once for each redirection
    assert "HALSTREAM_TORCH_STANDINS=-flash_attn leaves it out" in done.stderr


@pytest.mark.parametrize(("value", "found"), [("0", False), ("-flash_attn", False), ("flash_attn", True), ("1", True)])
def test_the_variable_chooses_the_stand_ins(program: Any, value: str, found: bool) -> None:
    done = program(
        """
        import importlib.util, halstream.torch.cuda_on_host
        print(importlib.util.find_spec("flash_attn") is not None)
        """,
        env={"HALSTREAM_TORCH_STANDINS": value},
    )
    assert done.stdout == f"{found}\n", done.stderr


def test_an_unknown_name_is_refused(program: Any) -> None:
    done = program("import halstream.torch.cuda_on_host", env={"HALSTREAM_TORCH_STANDINS": "flash_attn,flash"})
    assert done.returncode == 1
    assert "there is no stand-in 'flash'; give 0, or names of" in done.stderr and "flash_attn" in done.stderr


def test_an_installed_package_is_not_replaced(program: Any, tmp_path: Path) -> None:
    (tmp_path / "flash_attn.py").write_text("print('the real one')")
    about = tmp_path / "flash_attn-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: flash_attn\nVersion: 1.0\n")
    done = program(
        f"""
        import sys, importlib.metadata, halstream.torch.cuda_on_host
        sys.path.insert(0, {str(tmp_path)!r})
        import flash_attn
        print(importlib.metadata.version("flash-attn"))
        """
    )
    assert done.stdout == "the real one\n1.0\n" and "stand-in" not in done.stderr, done.stderr


def test_only_the_missing_module_of_a_package_is_replaced(torch: Any, installed: Any) -> None:
    installed("half_installed/__init__.py", "import flash_attn_2_cuda as gpu")
    import half_installed  # type: ignore[import-not-found]

    q = torch.randn(1, 4, 2, 8, dtype=torch.float16, device="cuda")
    out, lse, _, _ = half_installed.gpu.fwd(q, q, q, None, None, 0.0, 0.5, True, -1, -1, 0.0, False, None)
    assert out.shape == q.shape and lse.shape == (1, 2, 4)
    dq, _, _, _ = half_installed.gpu.bwd(
        q, q, q, q, out, lse, None, None, None, None, 0.0, 0.5, True, -1, -1, 0.0, False
    )
    assert dq.shape == q.shape and dq.isfinite().all()


def test_a_module_that_cannot_be_loaded_is_replaced(
    torch: Any, installed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    source = installed(
        "flash_attn_2_cuda.c",
        "int there_is_no_such_function(void); int f(void) { return there_is_no_such_function(); }",
    )
    library = tmp_path / f"flash_attn_2_cuda{suffix}"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(library)], check=True, timeout=60)
    for finder in sys.meta_path:
        if type(finder).__module__.startswith("halstream.torch._standins"):
            finder._said.clear()
    import flash_attn_2_cuda  # type: ignore[import-not-found]

    assert callable(flash_attn_2_cuda.varlen_fwd)
    said = capsys.readouterr().err
    assert said.startswith("halstream: flash_attn_2_cuda cannot be loaded (") and "there_is_no_such_function" in said


def test_a_module_that_the_stand_in_lacks_is_missing(torch: Any) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"flash_attn\.models"):
        importlib.import_module("flash_attn.models")
    assert importlib.metadata.version("flash_attn") == "2.8.4"


def test_a_missing_wait_before_a_stand_in_is_reported(torch: Any) -> None:
    import flash_attn

    q = torch.randn(1, 64, 2, 16, dtype=torch.float16, device="cuda")
    cache = torch.zeros(1, 64, 2, 16, dtype=torch.float16, device="cuda")
    side = torch.cuda.Stream()
    for waits in (True, False):
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            cache.fill_(1)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                flash_attn.flash_attn_func(q, cache, cache)
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)
    assert "flash_attn.flash_attn_func(q, cache, cache)" in str(report)
    assert "fix: " in str(report) and "side.wait_" in str(report)
