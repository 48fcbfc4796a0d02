"""Tokens of schedules under which tests failed, kept in pytest's cache until the tests pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .._schedules.token import Token

__all__ = ["Remembered", "remember", "remembered"]

# In pytest's cache: the token of each test, by node id. Only the process that shows reports
# writes it: workers of xdist would overwrite one another's.
_KEY = "halstream/tokens"
# In the input of a worker, which may be on another machine.
_INPUT = "halstream_tokens"


class Remembered:
    """A plugin that keeps the tokens that come with the reports of tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        token = getattr(report, "stream_remember", None)
        cache = getattr(self._config, "cache", None)  # not with -p no:cacheprovider
        if token is None or cache is None:
            return
        tokens = _kept(self._config)
        if token:
            tokens[report.nodeid] = token
        else:
            tokens.pop(report.nodeid, None)
        cache.set(_KEY, tokens)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker of xdist the tokens."""
        node.workerinput[_INPUT] = _kept(self._config)


def _kept(config: pytest.Config) -> dict[str, str]:
    given = getattr(config, "workerinput", {}).get(_INPUT)
    cache = getattr(config, "cache", None)
    if given is None and cache is not None:
        given = cache.get(_KEY, {})
    return dict(given) if isinstance(given, dict) else {}


def remembered(item: pytest.Item) -> Token | None:
    """Return the token under which a test failed in an earlier run; None without one that can be read."""
    from .._errors import ScheduleError
    from .._schedules.token import Token

    text = _kept(item.config).get(item.nodeid)
    if not isinstance(text, str):
        return None
    try:
        return Token.parse(text)
    except ScheduleError:
        return None


def remember(report: pytest.TestReport, token: str) -> None:
    """Have the token of a report's test kept, or with '' the one that is kept dropped."""
    report.stream_remember = token  # type: ignore[attr-defined]
