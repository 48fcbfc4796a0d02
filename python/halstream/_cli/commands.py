"""The commands of the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from .. import __version__
from .._checks.formats import Target, target, write
from .._checks.results import Result
from .._checks.suppress import from_environment
from .._errors import BackendAbsentError, InvalidValueError, ScheduleError
from . import programs as _programs
from . import script as _script
from .campaign import EXAMPLES, campaign
from .checks import doctor, explain, lint
from .init import init
from .terminal import App, Command, bars, fail, put, say
from .verify import EXAMPLES as VERIFY_EXAMPLES
from .verify import verify

__all__ = ["app"]

# Before typer installs its own hook: tracebacks of scripts are printed as Python does.
_HOOK = sys.excepthook

app: typer.Typer = App(
    name="halstream",
    help="Find missing waits between GPU streams, without a GPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# All arguments from the script's name on belong to the script.
_SCRIPT: dict[str, Any] = {"allow_interspersed_args": False}

_EXAMPLES = """Examples:

halstream run --sanitize train.py --epochs 1

halstream run --schedules 50 --sanitize -m package.module

halstream run --sanitize --report sarif:out.sarif --report html:out.html train.py"""

Script = Annotated[
    str,
    typer.Argument(
        metavar="SCRIPT",
        help="Python program to run, or a compiled one that uses libascendcl.so or libcuda.so.1.",
        show_default=False,
    ),
]
Args = Annotated[
    list[str] | None, typer.Argument(metavar="[ARGS]...", help="Arguments of the program.", show_default=False)
]


def _version(wanted: bool) -> None:
    if wanted:
        put(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


# -- info ---------------------------------------------------------------------


@app.command()
def info(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False) -> None:
    """Show version, backends, devices and settings, and why a backend is absent."""
    from .info import gather

    found = gather()
    if as_json:
        put(json.dumps(found, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"halstream {found['version']} on {found['python']}, {found['platform']}", markup=False)
    console.print(f"wheel: {found['wheel']}", markup=False)
    console.print(f"backend in use: {found['backend'] or 'none: ' + found['backend_reason']}", markup=False)
    for line in found["backend_passed"]:
        console.print(f"not chosen: {line}", markup=False)
    for table in _tables(found):
        console.print(table, soft_wrap=False)
    nvrtc = found["nvrtc"]
    state = f"{nvrtc['version']} ({nvrtc['library']})" if nvrtc["found"] else f"not found: {nvrtc['reason']}"
    console.print(f"NVRTC, which compiles kernels: {state}", markup=False)


def _tables(found: dict[str, Any]) -> list[Table]:
    backends = _table("Backends", "backend", "device", "name", "memory free", "of")
    for backend in found["backends"]:
        if not backend["usable"]:
            backends.add_row(backend["name"], "-", f"absent: {backend['reason']}", "", "")
        for device in backend["devices"]:
            backends.add_row(
                backend["name"],
                str(device["ordinal"]),
                device["name"],
                _bytes(device["memory_free"]),
                _bytes(device["memory_total"]),
            )
    variables = _table("Environment", "variable", "value", "meaning")
    for variable in found["environment"]:
        value = "(not set)" if variable["value"] is None else variable["value"]
        variables.add_row(variable["name"], value, variable["meaning"])
    return [backends, variables]


def _table(title: str, *columns: str) -> Table:
    """Return a table whose words go on in the next line where a terminal is too narrow for them: none is cut."""
    return Table(*(Column(name, overflow="fold") for name in columns), title=title, title_justify="left")


def _bytes(number: int | None) -> str:
    return "unknown" if number is None else f"{number / 2**30:.2f} GiB"


# -- trace --------------------------------------------------------------------


@app.command(context_settings=_SCRIPT)
def trace(
    script: Script,
    args: Args = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where the trace goes; SCRIPT's name with .pftrace if not given."
        ),
    ] = None,
) -> None:
    """Run SCRIPT and write what its streams did as a trace for ui.perfetto.dev.

    -o FILE may also be the last two arguments. The trace is written when SCRIPT
    ends, also with an exception; the exit code is SCRIPT's.
    """
    from . import tracing as _tracing

    rest = list(args or ())
    if output is None and len(rest) >= 2 and rest[-2] in ("-o", "--output"):
        rest, output = rest[:-2], rest[-1]
    sys.excepthook = _HOOK
    try:
        code = _tracing.trace(script, rest, output, say, bars())
    except _tracing.CannotTraceError as exc:
        fail(str(exc))
    raise typer.Exit(code)


# -- run and replay -----------------------------------------------------------

Sanitize = Annotated[bool, typer.Option("--sanitize", help="Find unordered accesses to the same bytes, too.")]
_SANITIZE = (
    "Find unordered accesses to the same bytes, too, with operations in the order of the calls; --sanitize=threads: on "
    "real threads."
)
Strict = Annotated[
    bool, typer.Option("--strict", help="With --sanitize: report functions of which it is not known what they touch.")
]
Pages = Annotated[
    bool, typer.Option("--pages", help="With --sanitize: see by the pages of memory which accesses nobody declares.")
]
Torch = Annotated[
    bool, typer.Option("--torch", help="Run CUDA programs of the real torch on the host device, without a GPU.")
]
Paddle = Annotated[
    bool, typer.Option("--paddle", help="Give the real Paddle the host device, as its custom device custom_cpu.")
]
Cuda = Annotated[
    bool, typer.Option("--cuda", help="Give CUDA programs the driver on the host device: numba, cuda.core, or in C.")
]
Module = Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as for python -m.")]
Stalls = Annotated[bool, typer.Option("--stalls/--no-stalls", help="End waits that can never end, and say why.")]


@app.command(context_settings=_SCRIPT, epilog=_EXAMPLES, cls=Command)
def run(
    script: Script,
    args: Args = None,
    schedules: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run SCRIPT under N schedules, each in a process of its own, until one fails."),
    ] = None,
    depth: Annotated[int, typer.Option(help="Steps that must come in a certain order for a failure (PCT).")] = 3,
    seed: Annotated[int, typer.Option(help="Another seed gives other schedules.")] = 0,
    threads: Annotated[
        bool,
        typer.Option(
            "--threads", help="Let SCRIPT's threads run one at a time, in turns that the schedules choose (50)."
        ),
    ] = False,
    sanitize: Annotated[bool, typer.Option("--sanitize", help=_SANITIZE)] = False,
    on_threads: Annotated[bool, typer.Option("--sanitize-on-threads", hidden=True)] = False,
    strict: Strict = False,
    pages: Pages = False,
    torch: Torch = False,
    paddle: Paddle = False,
    cuda: Cuda = False,
    module: Module = False,
    stalls: Stalls = True,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMAT:FILE",
            help="Write what is found as sarif, json, html or github, its fixes as diff; may be repeated.",
        ),
    ] = None,
    fix: Annotated[
        str | None,
        typer.Option(
            metavar="diff|apply",
            help="With --sanitize: print the lines that would order it as one patch; apply: and try them on copies.",
        ),
    ] = None,
    leaks: Annotated[
        bool,
        typer.Option("--leaks", help="Say at the end what SCRIPT made and did not give up (not with --schedules)."),
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long one of the N runs may take.")] = 60.0,
    shrink_runs: Annotated[int, typer.Option(help="Runs that may be spent on making a failure small.")] = 200,
    shrink_seconds: Annotated[float, typer.Option(help="Seconds, likewise.")] = 20.0,
) -> None:
    """Run SCRIPT; with --schedules, look for an order of its operations in which it fails.

    The exit code is SCRIPT's, or 1 where something was found.
    """
    from .._schedules.search import Settings
    from . import applied as _applied
    from . import running as _running

    sanitize = sanitize or on_threads
    if on_threads and (schedules is not None or threads):
        fail("--sanitize=threads is for a single run: schedules choose the order themselves")
    if not module and _programs.is_program(script):
        scripts_only = {"--threads": threads, "--strict": strict, "--pages": pages, "--torch": torch, "--leaks": leaks}
        scripts_only["--paddle"] = paddle
        for name in [name for name, given in (scripts_only | {"--report": report, "--fix": fix}).items() if given]:
            fail(f"{name} is for scripts in Python, and {script} is a compiled program; leave it out")
        if cuda:
            _driver_for_programs()
        if schedules is None:
            raise typer.Exit(_programs.plain(script, args or (), sanitize=sanitize, threads=on_threads))
        raise typer.Exit(_programs.explore(script, args or (), schedules, seed, timeout, sanitize=sanitize))
    _existing(script, module)
    for name in [name for name, given in (("--strict", strict), ("--pages", pages)) if given and not sanitize]:
        fail(f"{name} is for --sanitize: give both")
    if sanitize:
        _readable_suppressions()
    if fix not in (None, "diff", "apply"):
        fail(f"--fix is {fix!r}; give diff or apply")
    if fix and not sanitize:
        fail("--fix is for --sanitize: give both")
    targets = _targets([*(report or ()), *(["diff"] if fix else [])])
    results: list[Result] | None = [] if targets else None
    rest = list(args or ())
    if not stalls:
        os.environ["HALSTREAM_STALL"] = "0"
    if schedules is None and threads:
        schedules = _running.SCHEDULES
    if leaks and schedules is not None:
        fail("--leaks is for a single run: leave out --schedules")
    if not timeout > 0:
        fail(f"timeout is {timeout}; give a number of seconds above 0")
    options = _running.Options(
        sanitize, torch, timeout, module, strict, pages, paddle=paddle, cuda=cuda, real_threads=on_threads
    )
    wanted = _running.SCHEDULES if schedules is None else schedules
    try:
        settings = Settings(wanted, depth, seed, shrink_runs, shrink_seconds, threads=threads)
    except ScheduleError as exc:
        fail(str(exc))
    back = _applied.noted()
    if schedules is None:
        sys.excepthook = _HOOK
        try:
            code = _running.plain(script, rest, options, leaks=leaks, into=results)
        except _running.CannotRunError as exc:
            fail(str(exc))
    else:
        try:
            code = _running.explore(script, rest, settings, options, write=put, console=bars(), into=results)
        except (ScheduleError, _running.CannotRunError) as exc:
            fail(str(exc))
    leave = _applied.noted()  # for the functions that run at the exit
    back()
    _write_results(targets, results)
    if fix == "apply":
        outcome = _applied.tried(script, rest, settings, options, results or [], bars())
        print(f"\nhalstream: the suggested lines, applied to copies: {outcome}", flush=True)
    leave()
    raise typer.Exit(code)


def _driver_for_programs() -> None:
    """Let compiled programs find the CUDA driver on the host device."""
    from .._driver import variables

    try:
        os.environ.update(variables(python=False))
    except BackendAbsentError as exc:
        fail(str(exc))


@app.command(context_settings=_SCRIPT)
def replay(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="As `run` printed it.", show_default=False)],
    script: Script,
    args: Args = None,
    sanitize: Sanitize = False,
    strict: Strict = False,
    pages: Pages = False,
    torch: Torch = False,
    paddle: Paddle = False,
    cuda: Cuda = False,
    module: Module = False,
) -> None:
    """Run SCRIPT under the schedule of TOKEN, to see a failure again.

    SCRIPT may be a test, such as tests/test_x.py::test_y, which pytest runs. The exit code is 0 if SCRIPT passes, 2 if
    TOKEN is damaged or of another program.
    """
    from . import replaying as _replaying
    from . import running as _running

    if not module and _replaying.is_test(script):
        if paddle or args:
            fail("a test takes neither --paddle nor arguments: leave them out")
        given = {"sanitize": sanitize, "strict": strict, "pages": pages, "torch": torch, "cuda": cuda}
        raise typer.Exit(_replaying.replay(token, script, [name for name, wanted in given.items() if wanted]))

    if not module and _programs.is_program(script):
        if cuda:
            _driver_for_programs()
        try:
            raise typer.Exit(_programs.replay(token, script, list(args or ()), sanitize=sanitize))
        except ScheduleError as exc:
            fail(str(exc))
    _existing(script, module)
    for name in [name for name, given in (("--strict", strict), ("--pages", pages)) if given and not sanitize]:
        fail(f"{name} is for --sanitize: give both")
    if sanitize:
        _readable_suppressions()
    try:
        options = _running.Options(sanitize, torch, module=module, strict=strict, pages=pages, paddle=paddle, cuda=cuda)
        code = _running.replay(token, script, list(args or ()), options, say=say)
    except (ScheduleError, _running.CannotRunError) as exc:
        fail(str(exc))
    raise typer.Exit(code)


app.command(epilog=EXAMPLES)(campaign)
app.command()(doctor)
app.command()(explain)
app.command()(init)
app.command(epilog=VERIFY_EXAMPLES)(verify)
app.command()(lint)


@app.command(name="mcp")
def mcp() -> None:
    """Serve verify, explain and replay to agents, by the Model Context Protocol over stdin and stdout.

    It needs the extra halstream[mcp]. The exit code is 2 without it.
    """
    from . import server as _server

    try:
        _server.serve()
    except _server.MissingExtraError as exc:
        fail(str(exc))


@app.command(name="build-torch")
def build_torch() -> None:
    """Compile the module that `run --torch` and halstream.torch.redirect() need for the installed torch.

    Otherwise it is compiled at their first use on this machine.
    """
    from . import redirecting as _redirecting
    from .children import CannotRunError

    try:
        _redirecting.build_module(say, CannotRunError)
    except CannotRunError as exc:
        fail(str(exc))


def _targets(given: Iterable[str]) -> list[Target]:
    """Return where results go; end the command where they cannot."""
    try:
        return [target(text) for text in given]
    except InvalidValueError as exc:
        fail(f"--report: {exc}")


def _write_results(targets: Iterable[Target], results: list[Result] | None) -> None:
    try:
        write(targets, results or [], os.curdir, lambda text: print(text, end=""))
    except OSError as exc:
        fail(f"the program has run, but its results cannot be written: {exc}")


def _readable_suppressions() -> None:
    """End the command if the file of suppressions is damaged."""
    try:
        from_environment()
    except InvalidValueError as exc:
        fail(f"HALSTREAM_SUPPRESSIONS: {exc}")


def _existing(script: str, module: bool) -> None:
    """End the command if there is no such script or module."""
    try:
        _script.check(script, module)
    except FileNotFoundError as exc:
        fail(str(exc))
