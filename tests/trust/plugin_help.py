"""What the tests of the pytest plugin share: programs to test, and how to run pytest on them."""

from __future__ import annotations

import importlib
import pkgutil
import shlex
from textwrap import dedent

import halstream
import numpy  # noqa: F401 - a process can load it once only, and runs in this process forget what they loaded
import pytest

# For the same reason: a part of halstream that is loaded again does not know the objects of the first one.
for _name in ("_checks", "_core", "_kernel", "_memory", "_schedules", "_stalls", "_traces"):
    for _part in pkgutil.iter_modules([f"{halstream.__path__[0]}/{_name}"], f"halstream.{_name}."):
        importlib.import_module(_part.name)

#: Functions for tests: one with a race, one without.
RACE = """
    import halstream as hs
    import pytest

    def race(fails=AssertionError):
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        two.synchronize()
        one.synchronize()
        if seen != [1, 2]:
            raise fails(f"in the order {seen}")

    def right():
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.wait(one.record())
        two.call(seen.append, 2)
        two.synchronize()
        assert seen == [1, 2]
"""

_OTHERS = ("asyncio", "randomly", "xdist", "timeout")


class Runner:
    """Runs pytest in a folder of its own, without the plugins of others that are not named."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def __call__(self, source: str, *options: str, process: bool = False, plugins: str = "") -> pytest.RunResult:
        """Write tests after the functions of `RACE` and run them."""
        self.pytester.makepyfile(test_it=dedent(RACE) + dedent(source))
        return self.again(*options, process=process, plugins=plugins)

    def again(self, *options: str, process: bool = False, plugins: str = "") -> pytest.RunResult:
        """Run the tests that are there."""
        if process and not plugins and "-p" not in options:
            # To import the plugins that are installed for other tests takes longer than most of these runs.
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
                return self.pytester.runpytest_subprocess("-Wdefault", "-p", "halstream", *options)
        start = self.pytester.runpytest_subprocess if process else self.pytester.runpytest_inprocess
        without = [word for name in _OTHERS if name not in plugins.split() for word in ("-p", f"no:{name}")]
        return start("-Wdefault", *without, *options)


def command(result: pytest.RunResult) -> list[str]:
    """Return the arguments of the one command that the output gives."""
    lines = [line for line in result.outlines if line.startswith("Replay: pytest ")]
    assert len(lines) == 1, result.outlines
    return shlex.split(lines[0])[2:]
