"""Programs after public bug reports: each is reported in the modes that its row names, and its twin in none."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from races import MODES, PATTERNS, RACES, Race
from races.modes import errors_of_csan, mended, report_of

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).resolve().parents[2]
IDS = [race.name for race in RACES]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, torch: Any) -> Iterator[str]:
    """Return a mode; watching pages takes a right that not every machine gives."""
    if request.param == "pages":
        try:
            with hs.sanitize(on="collect", pages=True):
                pass
        except hs.NotSupportedError as exc:
            pytest.skip(str(exc))
    yield request.param


@pytest.mark.parametrize("race", RACES, ids=IDS)
def test_V1_a_reported_bug_is_found_and_its_repair_is_silent(race: Race, mode: str) -> None:
    report = report_of(race.broken, mode)
    found = bool(report.races or report.refills)
    assert found == (mode in race.modes), f"{race.missed}\n{report}"
    repaired = report_of(race.fixed, mode)
    assert not repaired.all, str(repaired)


@pytest.mark.parametrize("race", RACES, ids=IDS)
def test_the_repaired_program_computes_what_it_should(torch: Any, race: Race) -> None:
    race.fixed()


def test_the_table_names_each_program_and_why_it_is_missed() -> None:
    files = {path.stem for path in (ROOT / "tests" / "races").glob("*_[0-9]*.py")}
    assert {race.name for race in RACES} == files
    assert {race.pattern for race in RACES} == set(PATTERNS)
    for race in RACES:
        assert bool(race.missed) == (race.modes != MODES), race.name
        source = re.search(r"(?m)^Source: (\S+?)#(\d+)\b", race.load().__doc__ or "")
        assert source is not None and (source[1], int(source[2])) == (race.project, race.number), race.name
        assert str(race.number) in race.name


def test_torchs_own_sanitizer_runs_beside(torch: Any) -> None:
    """It sees a missing wait, and no memory that is used again."""
    by_name = {race.name: race for race in RACES}
    missing, freed = by_name["diffusers_13502"], by_name["deepspeed_7965"]
    assert errors_of_csan(missing.broken) and not errors_of_csan(missing.fixed)
    assert not errors_of_csan(freed.broken)


def test_a_suggested_line_is_put_in_as_it_stands(torch: Any) -> None:
    (race,) = (race for race in RACES if race.name == "deepspeed_7965")
    report = str(report_of(race.broken, "fifo"))
    assert mended(race, report)
    assert not mended(race, report.replace("flat.record_stream(reduction)", "pass"))
    assert not mended(race, report.replace("flat.record_stream(reduction)", "no_such_name.wait()"))
    assert not mended(race, "no line")


#: The programs of the page with their reports; a line is replaced by what stands behind its `# repair:`.
SHOWN = re.findall(
    r"(?ms)^```python\n# file: (\w+\.py)\n(.*?)^```\n\n```text\n(.*?)^```$", (ROOT / "docs" / "races.md").read_text()
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "source", "report"), SHOWN, ids=[name for name, _, _ in SHOWN])
def test_a_program_of_the_page_gives_its_report_and_none_with_the_repair(
    torch: Any, tmp_path: Path, name: str, source: str, report: str
) -> None:
    (tmp_path / name).write_text(source)
    command = [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, report in done.stderr + "\n") == (1, True), done.stderr

    repaired = re.sub(r"(?m)^( *).*# repair: (.*)$", r"\1\2", source)
    assert repaired != source
    with hs.sanitize(on="collect") as found:
        exec(compile(repaired, name, "exec"), {"__name__": "__main__"})
        torch.cuda.synchronize()
    assert not found.all, str(found)


def test_the_page_has_a_program_for_each_pattern() -> None:
    page = (ROOT / "docs" / "races.md").read_text()
    assert len(SHOWN) == page.count("\n## ") == 10
    named = set(re.findall(r"github\.com/([\w.-]+/[\w.-]+)/(?:pull|issues)/(\d+)\)", page))
    assert named <= {(race.project, str(race.number)) for race in RACES}
