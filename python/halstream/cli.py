"""The command line: ``halstream``, or ``python -m halstream``.

The commands need what the extra ``cli`` brings; without it `main` says so.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cli.commands import app

__all__ = ["app", "main"]


def main() -> int:
    """Run the command line on `sys.argv`; return the exit code, or end with it.

    2 stands for a command that could not be carried out; a command that runs a
    script has the script's own code, or 1 where it found a failure.
    """
    if sys.argv[1:2] == ["_trial"]:
        from ._plugin.trial import main as try_tests

        return try_tests(sys.argv[2:])
    if sys.argv[1:2] == ["_verify"]:
        from ._plugin.verified import main as verified

        return verified(sys.argv[2:])
    if sys.argv[1:2] == ["_child"]:
        # A run of a script under one schedule; needs nothing of the extra.
        from ._cli.child import main as child

        return child(sys.argv[2:])
    if sys.argv[1:2] == ["_forks"]:
        from ._cli.serving import serve

        return serve(sys.argv[2:])
    try:
        import rich
        import typer
    except ImportError as exc:
        print(
            f"halstream: the command line needs the packages of an extra ({exc}); say pip install 'halstream[cli]'",
            file=sys.stderr,
        )
        return 2
    del rich, typer
    from ._cli.commands import app

    app(prog_name="halstream")  # ends with SystemExit
    return 0


def __getattr__(name: str) -> Any:
    # The commands are loaded where they are asked for: they import typer.
    if name == "app":
        from ._cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
