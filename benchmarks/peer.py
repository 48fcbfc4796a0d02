"""What the runner knows of a peer, and the environments it makes for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "peers"
INSTALL_S = 900  # a peer that takes longer to install counts as one that does not


class PeerAbsentError(Exception):
    """A peer cannot be measured here; the text says why."""


def nothing(folder: Path) -> Mapping[str, str]:
    """Add nothing to the environment."""
    return {}


@dataclass(frozen=True)
class Peer:
    """A contestant.

    `packages` go into an environment of its own, `prepare` does what pip
    cannot, and returns the environment variables it needs. Without packages
    it runs in the runner's environment.
    """

    name: str
    title: str
    module: str  # that it imports, to see that it is there
    packages: tuple[str, ...] = ()
    prepare: Callable[[Path], Mapping[str, str]] = nothing
    environment: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def folder(self) -> Path:
        """Where its environment lives."""
        return FOLDER / self.name

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "venv" / "bin" / "python") if self.packages else sys.executable

    def install(self) -> None:
        """Make its environment, unless it stands; then compute its variables.

        Raises
        ------
        PeerAbsentError
            If pip fails.
        """
        stamp = self.folder / "installed"
        wanted = "\n".join((sys.version, *self.packages))
        if self.packages and not (stamp.exists() and stamp.read_text() == wanted):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            command([sys.executable, "-m", "venv", str(self.folder / "venv")])
            pip = [self.python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
            command([*pip, *self.packages])
            stamp.write_text(wanted)
        cache = self.folder / "cache"  # compiled kernels stay in the build folder
        cache.mkdir(parents=True, exist_ok=True)
        # The package that is measured is the one of this tree, whichever the environment has installed.
        path = os.pathsep.join([str(ROOT), str(ROOT / "python")])
        self.environment.update(os.environ, XDG_CACHE_HOME=str(cache), PYTHONPATH=path)
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an import does not compile, where it is measured
        self.environment.update(self.prepare(self.folder))


def command(words: list[str]) -> str:
    """Run a command and return its output.

    Raises
    ------
    PeerAbsentError
        If it fails, with the last line it wrote.
    """
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise PeerAbsentError(str(exc)[:300]) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        what = " ".join(Path(word).name for word in words[:4])
        raise PeerAbsentError(f"`{what} ...` failed: {lines[-1][:200]}")
    return done.stdout
