"""What the source distribution holds, beside what git does."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys, build_backend; build_backend.build_sdist(sys.argv[1])"
#: Only of use where the project is hosted.
LEFT_OUT = ".github/"
#: What setuptools adds.
ADDED = {"PKG-INFO", "setup.cfg"}


def test_the_sdist_has_all_that_git_has(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    files = {f for f in listed.stdout.splitlines() if (ROOT / f).exists() and not f.startswith(LEFT_OUT)}
    assert files - inside == set()
    assert {f for f in inside - files if ".egg-info/" not in f} - ADDED <= untracked()


def untracked() -> set[str]:
    """Return files that git would take but has not yet."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())
