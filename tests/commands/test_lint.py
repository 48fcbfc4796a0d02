"""`halstream lint`: what the rules find, what they leave alone, and what the command prints."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from halstream._cli.commands import app
from halstream._lint import data
from halstream._lint.finding import RULES
from halstream._lint.names import _lacks
from halstream._lint.resolve import own_nodes
from halstream._lint.run import check_file, files
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent.parent


def rules_of(tmp_path: Path, source: str) -> list[tuple[int, str]]:
    path = tmp_path / "app.py"
    path.write_text(textwrap.dedent(source))
    return [(found.line, found.rule) for found in check_file(str(path))]


#: A line that is found by each rule, and the same line as it is right.
CASES = [
    ("HS101", "import torch\ntorch.cuda.synchronise()", "import torch\ntorch.cuda.synchronize()"),
    ("HS101", "from torch.cuda import Streams", "from torch.cuda import Stream"),
    ("HS101", "from halstream.cupy import cuda\ncuda.Streem()", "from halstream.cupy import cuda\ncuda.Stream()"),
    (
        "HS101", "import halstream.torch\nhalstream.torch.cuda.sync()",
        "import halstream.torch\nhalstream.torch.cuda.synchronize()",
    ),
    ("HS101", "import acl\nacl.rt.create_streem()", "import acl\nacl.rt.create_stream()"),
    ("HS102", "import torch\ntorch.cuda.Stream().record()", "import torch\ntorch.cuda.Stream().record_event()"),
    ("HS102", "from mindspore import hal\nhal.Stream().done", "from mindspore import hal\nhal.Stream().query()"),
    ("HS102", "import torch\ntorch.cuda.Stream().record_event().done", "import cupy\ncupy.cuda.Stream().record().done"),
    ("HS103", "import paddle\npaddle.device.Event(device=0)", "import paddle\npaddle.device.Event(True)"),
    ("HS103", "import torch\ntorch.cuda.Event(1, 1, 1, 1, 1)", "import torch\ntorch.cuda.Event(1, 1, 1, 1)"),
    ("HS103", "import torch\ntorch.cuda.Stream().wait_event()", "import torch\ntorch.cuda.Stream().wait_event(e)"),
    ("HS103", "import torch\ntorch.cuda.Stream().query(1)", "import torch\ntorch.cuda.Stream().query()"),
    (
        "HS201", "import cupy\na, b = 1, 2\ns = cupy.cuda.Stream()\nt = cupy.cuda.Stream()\ns.use()\nwith t:\n    pass",
        "import torch\ns = torch.cuda.Stream()\ntorch.cuda.set_stream(s)\nwith torch.cuda.stream(s):\n    pass",
    ),
    (
        "HS202", "import mindspore as ms\nwith ms.hal.StreamCtx(ms.hal.Stream()) as s:\n    pass",
        "import mindspore as ms\nwith ms.hal.StreamCtx(ms.hal.Stream()):\n    pass",
    ),
    ("HS203", "import paddle\npaddle.device.Stream(priority=-1)", "import paddle\npaddle.device.Stream(priority=1)"),
    ("HS203", "import torch\ntorch.cuda.Stream(priority=1)", "import torch\ntorch.cuda.Stream(priority=-1)"),
    (
        "HS204", "import torch\nx = torch.empty(3)\nwith torch.cuda.stream(s):\n    y = x + 1\ndel x",
        "import torch\nx = torch.empty(3)\nwith torch.cuda.stream(s):\n    y = x + 1\nx.record_stream(s)\ndel x",
    ),
    (
        "HS205", "import torch\na = torch.cuda.Event()\nb = torch.cuda.Event()\na.elapsed_time(b)",
        "import torch\na = torch.cuda.Event(enable_timing=True)\nb = torch.cuda.Event(True)\na.elapsed_time(b)",
    ),
    (
        "HS206",
        "import acl\ne, r = acl.rt.create_event_with_flag(1)\nfor i in x:\n    acl.rt.record_event(e, s)\n"
        "    acl.rt.stream_wait_event(t, e)",
        "import acl\ne, r = acl.rt.create_event_with_flag(1)\nfor i in x:\n    acl.rt.record_event(e, s)\n"
        "    acl.rt.stream_wait_event(t, e)\n    acl.rt.reset_event(e, t)",
    ),
    ("HS207", "import torch\ntorch.cuda.Stream(True)", "import cupy\ncupy.cuda.Stream(True)"),
    ("HS301", "s = stream()\ns.wait_stream(s)", "s = stream()\ns.wait_stream(t)"),
    ("HS301", "def f(x):\n    x.side.wait_stream(x.side)", "def f(x):\n    x.side.wait_stream(x.main)"),
    (
        "HS301", "import torch\nwith torch.cuda.stream(s):\n    s.wait_stream(torch.cuda.current_stream())",
        "import torch\ns.wait_stream(torch.cuda.current_stream())\nwith torch.cuda.stream(s):\n    pass",
    ),
    (
        "HS301",
        "import torch\nwith torch.cuda.stream(x.s):\n    if x:\n        torch.cuda.current_stream().wait_stream(x.s)",
        "import torch\nwith torch.cuda.stream(x.s):\n    torch.cuda.current_stream().wait_stream(x.t)",
    ),
    (
        "HS301",
        "import paddle\nwith paddle.device.stream_guard(s):\n    s.wait_stream(paddle.device.current_stream())",
        "import paddle\nwith paddle.device.stream_guard(s):\n    s.wait_stream(main)",
    ),
    (
        "HS302",
        "import torch\nclass Offload:\n    def __init__(self):\n        self.main = torch.cuda.current_stream()\n"
        "    def pack(self):\n        self.side.wait_stream(self.main)",
        "import torch\nclass Offload:\n    def __init__(self):\n        self.side = torch.cuda.Stream()\n"
        "    def pack(self):\n        self.side.wait_stream(torch.cuda.current_stream())",
    ),
    (
        "HS302",
        "import torch\nclass A:\n    def __init__(self):\n        self.s, self.m = f(), torch.cuda.default_stream()\n"
        "    def g(self):\n        self.s.wait_stream(self.m)",
        "import torch\nclass A:\n    def __init__(self):\n        self.m = torch.cuda.default_stream()\n"
        "        self.s.wait_stream(self.m)",
    ),
    ("HS303", "y = x.to('cpu', non_blocking=True)\ny.sum()", "y = x.to('cpu', non_blocking=True)\nsync()\ny.sum()"),
    (
        "HS303",
        "import torch\nwith torch.cuda.stream(s):\n    y = x.to('cpu', non_blocking=True)\nif z:\n    y = y + 1",
        "import torch\nwith torch.cuda.stream(s):\n    y = x.to('cpu', non_blocking=True)\nif z:\n    y = z + 1",
    ),
    ("HS303", "print(x.to('cpu', non_blocking=True).item())", "print(x.to('cpu').item())"),
    (
        "HS303", "import torch\ny = x.to(device=torch.device('cpu'), non_blocking=True)\nif y > 3:\n    pass",
        "import torch\ny = x.to(device=torch.device('cuda'), non_blocking=True)\nif y > 3:\n    pass",
    ),
    ("HS303", "y = x.to('cpu', non_blocking=True)\nf(float(y))", "y = x.to('cpu', non_blocking=True)\nf(y)"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "wrong", "right"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_a_rule_finds_what_is_wrong_and_leaves_what_is_right(tmp_path: Path, rule: str, wrong: str, right: str) -> None:
    assert [found for _, found in rules_of(tmp_path, wrong)] == [rule] * len(rules_of(tmp_path, wrong)) != []
    assert rules_of(tmp_path, right) == []


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} | {"HS001"} == set(RULES)


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import cupy as xp\nexcept ImportError:\n    import numpy as xp\nxp.cuda.nothing()",
        "import torch\ns = torch.cuda.Stream()\ns = other()\ns.nothing()",
        "import torch\nfor s in streams():\n    s.nothing()\ntorch.nn.Linear(1, 2)\ntorch.cuda._private()",
        "def f(torch):\n    torch.nothing()",
        "import torch\nclass S(torch.cuda.Stream):\n    pass\nS().nothing()",
        "import torch\ntorch.cuda.Event(*flags, **words)",
        "from .torch import nothing",
        "import halstream as hs\nhs.Stream().nothing()",
        "try:\n    from torch.cuda import Later\nexcept ImportError:\n    Later = None",
        "import torch\ntry:\n    torch.cuda.later()\nexcept (OSError, AttributeError):\n    pass",
        "import torch\ntry:\n    s = torch.cuda.Event(later=1)\nexcept TypeError:\n    s = torch.cuda.Event()",
        "import torch\ntry:\n    torch.cuda.later()\nexcept:\n    pass",
        "import torch\nif not hasattr(torch.cuda, 'later'):\n    exit()\ntorch.cuda.later()",
        "import torch\nif torch.__version__ >= '9':\n    torch.cuda.later()\nelse:\n    torch.cuda.earlier()",
        "import torch\ntorch.cuda.mine = print\ntorch.cuda.mine()",
        "import torch\nsetattr(torch.cuda, 'mine', print)\ntorch.cuda.mine()",
        "import torch\ns = torch.cuda.Stream()\ndef f():\n    global s\n    s = other()\ns.nothing()",
        "import torch\ndef f():\n    s = torch.cuda.Stream()\n    def g():\n        nonlocal s\n    s.nothing()",
        "import torch\ntry:\n    f()\nexcept OSError as torch:\n    torch.nothing",
        "import torch\nmatch f():\n    case [*torch]:\n        torch.nothing",
        "import torch\nmatch f():\n    case {**torch}:\n        torch.nothing",
        "import torch\nmatch f():\n    case torch:\n        torch.nothing",
        "from torch.cuda import comm\nfrom cupy.cuda import nccl\nfrom mindspore.hal import event",
        "import torch.cuda.later\ntorch.cuda.later.f()",
        "import torch\nwith torch.cuda.stream(s):\n    s = t\n    s.wait_stream(torch.cuda.current_stream())",
        "import torch\nwith torch.cuda.stream(s):\n    torch.cuda.set_stream(t)\n"
        "    s.wait_stream(torch.cuda.current_stream())",
        "import torch\nwith torch.cuda.stream(s):\n    with torch.cuda.stream(t):\n"
        "        s.wait_stream(torch.cuda.current_stream())",
        "import torch\nwith torch.cuda.stream(s):\n    s.wait_stream(torch.cuda.current_stream(1))",
        "import torch\nwith torch.cuda.stream(s):\n    def hook():\n        s.wait_stream(torch.cuda.current_stream())",
        "streams[0].wait_stream(streams[1])\nf().wait_stream(f())",
        "import torch\nclass A:\n    def __init__(self):\n        self.m = torch.cuda.current_stream()\n"
        "    def g(self):\n        self.m = torch.cuda.current_stream()\n        self.s.wait_stream(self.m)",
        "y = x.to('cpu', non_blocking=True).numpy()\nz = y.view(2)\nkept.append(z)",  # views read nothing
        "y = x.to('cpu', non_blocking=True)\nevent.synchronize()\ny.item()",
        "y = x.to('cpu', non_blocking=True)\nloss.item()\ny.item()",  # waits for the same stream
        "y = x.to('cpu', non_blocking=True)\ny = other()\ny.item()",
        "y = x.to('cpu', non_blocking=True)\nif y is None:\n    pass",
        "y = x.to(place, non_blocking=True)\ny.item()",
        "if here:\n    x = x.to('cpu', non_blocking=True)\nelif there:\n    x = x.clone()",
        "try:\n    y = x.to('cpu', non_blocking=True)\n    f()\nexcept OSError:\n    y.item()",
    ],
)
def test_what_is_not_certain_is_no_finding(tmp_path: Path, source: str) -> None:
    assert rules_of(tmp_path, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\n    torch.cuda.nothing()\nexcept Exception:\n    pass",  # it is for what f raises
        "try:\n    torch.cuda.nothing()\nexcept OSError:\n    pass",
        "try:\n    f()\nexcept AttributeError:\n    torch.cuda.nothing()",
        "if hasattr(torch.cuda, 'other'):\n    torch.cuda.nothing()",
        "s: object = torch.cuda.Stream()\ns.nothing()",
        "if (s := torch.cuda.Stream()):\n    s.nothing()",
    ],
)
def test_what_is_certain_nevertheless_is_a_finding(tmp_path: Path, source: str) -> None:
    assert len(rules_of(tmp_path, f"import torch\n{source}")) == 1


def test_names_are_followed_into_functions_and_not_out_of_classes(tmp_path: Path) -> None:
    source = """
        import torch
        s = torch.cuda.Stream()
        def f():
            s.nothing()
        class C:
            s = None
            def g(self):
                s.neither()
        """
    assert rules_of(tmp_path, source) == [(5, "HS102"), (9, "HS102")]


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("# noqa", 0), ("# noqa: HS101", 0), ("# noqa: E501, HS101", 0), ("# halstream: ignore", 0),
        ("# halstream: ignore[HS101]", 0), ("# noqa: HS102", 1), ("# a comment", 1),
    ],
)  # fmt: skip
def test_a_comment_silences_its_line(tmp_path: Path, comment: str, found: int) -> None:
    assert len(rules_of(tmp_path, f"import torch\ntorch.cuda.nothing()  {comment}\n")) == found


@pytest.mark.parametrize(
    "content",
    [
        b"def f(:\n",
        b"\xff\xfe\x00",
        b"# coding: no-such\n",
        b"x = '\x00'\n",
        b"(" * 5000 + b")" * 5000,
        b"# coding: utf-8\n\xe9\n",
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "app.py"
    path.write_bytes(content)
    assert [found.rule for found in check_file(str(path))] == ["HS001"]


#: Nested more deeply than Python's recursion may be, and run by Python nevertheless.
DEEP = {
    "sum": "x = " + "+".join(["'a'"] * 2900),
    "elif": "if 1: pass\n" + "elif 2: pass\n" * 2900,
    "calls": "import torch\nx = torch.cuda.Stream()" + ".wait().done()" * 700,
}


@pytest.mark.parametrize("name", DEEP)
def test_what_python_compiles_is_read_however_deep_it_is(tmp_path: Path, name: str) -> None:
    source = f"{DEEP[name]}\nimport torch\ntorch.cuda.nothing()"
    path = tmp_path / "app.py"
    path.write_text(source)
    subprocess.run([sys.executable, "-c", f"compile(open({str(path)!r}).read(), 'app.py', 'exec')"], check=True)
    limit = sys.getrecursionlimit()
    found = rules_of(tmp_path, source)
    assert (source.count("\n") + 1, "HS101") in found and "HS001" not in {rule for _, rule in found}
    assert sys.getrecursionlimit() == limit


def test_the_nodes_of_a_scope_are_in_the_order_of_the_source() -> None:
    tree = ast.parse("a(b, lambda: c)\ndef f():\n    d\nif e:\n    g\nh")
    assert [node.id for node in own_nodes(tree) if isinstance(node, ast.Name)] == ["a", "b", "e", "g", "h"]


def test_a_named_pipe_in_a_folder_is_no_file_of_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")  # to open it would wait for a writer
    (tmp_path / "app.py").touch()
    (tmp_path / "lost.py").symlink_to("nowhere")  # is said not to be readable
    assert list(files([str(tmp_path)])) == [str(tmp_path / "app.py"), str(tmp_path / "lost.py")]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["lint", *words])


def test_the_command_prints_places_and_returns_whether_something_was_found(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import torch\n\ntorch.cuda.synchronise()\n")
    (tmp_path / "good.py").write_text("import torch\n")
    found = run(str(tmp_path))
    assert found.exit_code == 1
    path = tmp_path / "app.py"
    assert found.output.splitlines() == [
        f"{path}:3:1: HS101 torch.cuda has no synchronise in torch 2.15.0; it has synchronize",
        "1 finding(s) in 2 file(s)",
    ]
    assert run(str(tmp_path / "good.py")).exit_code == 0
    assert run(str(path), "--select", "HS2").exit_code == 0
    assert run(str(path), "--select", "hs1").output == found.output.replace("in 2", "in 1")
    assert run(str(tmp_path / "none.py")).exit_code == 2
    assert run().exit_code == 2


@pytest.mark.parametrize("rule", ["HS999", "hs4", "E501", "HS101,HS102"])
def test_a_rule_that_does_not_exist_is_refused(tmp_path: Path, rule: str) -> None:
    (tmp_path / "app.py").write_text("import torch\n\ntorch.cuda.synchronise()\n")
    done = run(str(tmp_path), "--select", "HS1", "--select", rule)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"halstream: no rule begins with {rule.upper()}; see --rules\n"


def test_each_file_of_the_program_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("app.py", "env/lib/theirs.py", "node_modules/theirs.py", ".tool/theirs.py", "part/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import torch\ntorch.cuda.synchronise()\n")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [line.split(":")[0] for line in run("part/app.py", ".").output.splitlines()] == [
        "part/app.py", "app.py", "2 finding(s) in 2 file(s)",
    ]  # fmt: skip
    assert run("env/lib/theirs.py").exit_code == 1, "a file that is named is checked"


def test_the_findings_as_json(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text("import torch\ntorch.cuda.synchronise()\n")
    found = json.loads(run("--json", str(path)).output)
    assert found["files"] == 1
    assert [(one["file"], one["line"], one["column"], one["rule"]) for one in found["findings"]] == [
        (str(path), 2, 1, "HS101")
    ]


def test_the_list_of_rules() -> None:
    assert run("--rules").output.splitlines() == [f"{rule}  {text}" for rule, text in RULES.items()]


#: Names that real packages have, most of them outside of what the dialects list.
REAL = [
    "from paddle import nn, optimizer, distributed, io",
    "import paddle\npaddle.nn.Linear(1, 1)\npaddle.io.DataLoader(paddle.base.CPUPlace())",
    "from mindspore import dataset, mint, train\nfrom mindspore.nn import cell",
    "from mindspore.ops import operations as P\nP.AllReduce()",
    "import cupy\nfrom cupy import cublas\ncupy.cuda.curand.createGenerator(100)",
    "import torch\ntorch.unique(torch.broadcast_shapes((1,), (2,)))\nfrom torch import onnx\ntorch.has_cuda",
    "from torch.cuda import comm, profiler\nprofiler.start()\nprofiler.check_error(0)",
    "import paddle\npaddle.device.Device('cuda:0').split(':')",
]


@pytest.mark.parametrize("source", REAL)
def test_what_the_real_packages_have_is_no_finding(tmp_path: Path, source: str) -> None:
    assert rules_of(tmp_path, source) == []


def test_every_recorded_name_of_a_real_module_is_known() -> None:
    recorded = json.loads((ROOT / "tests" / "signatures" / "modules.json").read_text())
    asked = 0
    for part in ("names", "modules"):
        for module, text in recorded[part].items():
            if module.partition(".")[0] in data.DIALECTS:
                assert [name for name in text.split() if _lacks(module, name)] == [], module
                asked += len(text.split())
    assert asked > 5000 and _lacks("torch.cuda", "synchronise")


@pytest.mark.parametrize(
    "use", ["torch.cpu.Stream().query()", "torch.cpu.Event().elapsed_time(e)", "torch.Event().cuda_event"]
)
def test_a_class_does_not_borrow_from_one_of_its_name_elsewhere(tmp_path: Path, use: str) -> None:
    assert rules_of(tmp_path, f"import torch\n{use}") == [(2, "HS102")]


def test_the_signatures_are_those_of_the_mirrored_packages() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("lint_signatures", ROOT / "tools" / "lint_signatures.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.TARGET.read_text() == tool.text()
    assert tool.ALSO.read_text() == tool.also()


def test_the_examples_use_what_they_say_they_use() -> None:
    found = {
        name: {one.rule for one in check_file(str(ROOT / "examples" / f"{name}_streams.py"))}
        for name in ("cupy", "torch", "paddle")
    }
    # They show clamped priorities and the documented form of paddle's Stream, and use the core's call() and limits.
    assert found == {"cupy": set(), "torch": {"HS102", "HS103", "HS203"}, "paddle": {"HS102", "HS103"}}


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "commands.md").read_text().partition("\n## halstream lint\n")[2]
    source, printed = re.findall(r"(?ms)^```text\n(.*?)^```$", page)[:2]
    (tmp_path / "app.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert run("app.py").output == printed
    assert re.findall(r"(?m)^\| (HS\d+) \| (.*) \|$", page) == list(RULES.items())


def test_some_of_the_popular_races_show_in_the_source(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "races.md").read_text()
    found = {}
    for name, source in re.findall(r"(?ms)^```python\n# file: (\w+)\.py\n(.*?)^```$", page):
        found[name] = {rule for _, rule in rules_of(tmp_path, source)}
        assert rules_of(tmp_path, re.sub(r"(?m)^( *).*# repair: (.*)$", r"\1\2", source)) == [], name
    assert {name: rules for name, rules in found.items() if rules} == {
        "itself": {"HS301"}, "cached_stream": {"HS302"}, "early_read": {"HS303"}, "record_stream": {"HS204"},
    }  # fmt: skip
