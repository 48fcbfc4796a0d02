"""``halstream mcp``, asked by the protocol's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RACE = """
import halstream as hs

def test_race():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)
    hs.synchronize()
"""
LIMIT = 120.0


def asked(folder: Path, questions: Callable[[Any], Any]) -> Any:
    """Start the server in a folder, and return what an async function gets from a client of it."""
    mcp = pytest.importorskip("mcp")
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "halstream", "mcp"], cwd=str(folder), env=dict(os.environ)
    )

    async def talk() -> Any:
        async with mcp.Client(parameters, read_timeout_seconds=LIMIT) as client:
            return await questions(client)

    return asyncio.run(asyncio.wait_for(talk(), LIMIT))


@pytest.mark.needs("schedules")
def test_an_agent_verifies_looks_up_and_replays(backend: str, tmp_path: Path) -> None:
    (tmp_path / "test_race.py").write_text(RACE)

    async def questions(client: Any) -> Any:
        tools = await client.list_tools()
        found = await client.call_tool("verify", {"paths": ["test_race.py"], "schedules": 3})
        (one,) = found.structured_content["findings"]
        page = await client.call_tool("explain", {"code": one["code"]})
        again = await client.call_tool("replay", {"token": one["token"], "target": one["tests"][0]})
        return [tool.name for tool in tools.tools], found.structured_content, page, again.structured_content

    names, found, page, again = asked(tmp_path, questions)
    assert names == ["verify", "explain", "replay"]
    assert found["verdict"] == "fail" and "two.wait(one.record())" in found["patches"][0]["diff"]
    assert page.content[0].text.startswith("# unordered-access\n")
    assert again["exit_code"] == 1 and "unordered access" in again["output"]


def test_wrong_arguments_are_answers(backend: str, tmp_path: Path) -> None:
    async def questions(client: Any) -> Any:
        unknown = await client.call_tool("explain", {"code": "unordred-access"})
        listed = await client.call_tool("explain", {})
        found = await client.call_tool("verify", {"paths": ["nowhere.py"]})
        again = await client.call_tool("replay", {"token": "hs1-nothing", "target": "nowhere.py"})
        return unknown.content[0].text, listed.content[0].text, found.structured_content, again.structured_content

    unknown, listed, found, again = asked(tmp_path, questions)
    assert "did you mean unordered-access?" in unknown and "\nleak " in listed
    assert found["verdict"] == "error" and "nowhere.py" in found["message"]
    assert again == {"exit_code": 2, "output": "halstream: there is no script 'nowhere.py'"}


def test_without_the_extra_the_message_names_it(cli: Any, hide: Callable[..., dict[str, str]]) -> None:
    hidden = os.pathsep.join([hide("mcp")["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])
    done = cli("mcp", env={"PYTHONPATH": hidden})
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'halstream[mcp]'" in done.stderr
