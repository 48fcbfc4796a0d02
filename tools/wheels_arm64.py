"""Runs a wheel for arm64 on a machine with another processor: Debian's CPython for arm64 under qemu.

Usage: python tools/wheels_arm64.py WHEEL [-- PYTEST ARGUMENTS]

Debian's packages for arm64 (Python, its library, NumPy, and what these need) are
downloaded by apt-get, with an apt state of its own in build/arm64, and unpacked there;
nothing is installed but qemu itself. Where there is no apt-get it says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "arm64"
TREE = FOLDER / "tree"
SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = [
    *("python3-numpy", "python3-pytest", "python3-hypothesis", "python3-pytest-timeout", "python3-anyio"),
    *("python3-typer", "python3-rich", "python3-cffi"),
]
CONF = """
Dir::Etc "{0}/etc";
Dir::State "{0}/state";
Dir::State::status "{0}/state/status";
Dir::Cache "{0}/cache";
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
"""
CALL = """
import platform, sys
import halstream
from halstream.torch import cuda
done, stream = [], cuda.Stream()
stream.call(done.append, 1)
stream.synchronize()
assert done == [1] and platform.machine() == "aarch64"
print("ok", sys.version.split()[0], platform.machine(), halstream.__version__)
"""


def qemu() -> str | None:
    """Return qemu for arm64 programs; it is installed where apt-get can."""
    names = ("qemu-aarch64-static", "qemu-aarch64")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "qemu-user-static"], check=False, stdout=subprocess.DEVNULL)
        found = next((path for name in names if (path := shutil.which(name))), None)
    return found


def apt(*words: str) -> None:
    env = {**os.environ, "APT_CONFIG": str(FOLDER / "apt.conf")}
    subprocess.run(["apt-get", "-qq", *words], env=env, check=True, stdout=subprocess.DEVNULL)


def tree() -> None:
    """Unpack Debian's CPython for arm64 with its libraries, once."""
    if (TREE / "complete").exists():
        return
    for name in ("etc/sources.list.d", "etc/apt.conf.d", "etc/preferences.d", "state/lists/partial"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    (FOLDER / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (FOLDER / "state" / "status").touch()
    (FOLDER / "apt.conf").write_text(CONF.format(FOLDER))
    source = f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {SUITE} main\n"
    (FOLDER / "etc" / "sources.list").write_text(source)
    apt("update")
    apt("install", "--download-only", "-y", *PACKAGES)
    shutil.rmtree(TREE, ignore_errors=True)
    # In a Debian of today these folders are links into /usr; packages may use either name.
    for name in ("bin", "sbin", "lib"):
        (TREE / "usr" / name).mkdir(parents=True)
        (TREE / name).symlink_to(f"usr/{name}")
    for package in sorted((FOLDER / "cache" / "archives").glob("*.deb")):
        # Not dpkg -x: it would put folders in the place of the links.
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], check=True, capture_output=True)
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", str(TREE)], input=data.stdout, check=True)
    (TREE / "complete").touch()


def main(wheel: Path, tests: list[str] | None = None) -> int:
    """Call the wheel, and run tests with it when there are any; return pytest's exit code."""
    emulator = qemu()
    if emulator is None or shutil.which("dpkg-deb") is None:
        print(f"{wheel.name}: not run, there is neither qemu-aarch64 nor an apt-get that installs it", flush=True)
        return 0
    tree()
    site = FOLDER / "site"
    shutil.rmtree(site, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    env = {
        **os.environ,
        "PYTHONPATH": str(site),
        "PYTHONHOME": str(TREE / "usr"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "QEMU_LD_PREFIX": str(TREE),
    }
    python = [emulator, str(TREE / "usr" / "bin" / "python3")]
    subprocess.run([*python, "-c", CALL], env=env, cwd=FOLDER, check=True, timeout=300)
    if not tests:
        return 0
    options = ["-q", "-p", "no:cacheprovider", "-p", "halstream.pytest_plugin", "--timeout=600"]
    return subprocess.run([*python, "-m", "pytest", *options, *tests], env=env, cwd=ROOT).returncode


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(Path(words[0]).resolve(), words[2:]))
