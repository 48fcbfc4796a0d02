"""pyopencl on PoCL, from Debian: a thread pool on condition variables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ..peer import Peer, PeerAbsentError, command
from ._opencl import measure as measure

PACKAGE = "pocl-opencl-icd"
SYSTEM = Path("/etc/OpenCL/vendors/pocl.icd")


def prepare(folder: Path) -> Mapping[str, str]:
    """Use the PoCL that is installed; else unpack Debian's package, installing nothing."""
    folders = ""
    if SYSTEM.exists():
        library = SYSTEM.read_text().strip()
    else:
        found = unpacked(folder)
        library, folders = str(found), str(found.parent)
    vendors = folder / "vendors"
    vendors.mkdir(exist_ok=True)
    (vendors / "pocl.icd").write_text(f"{library}\n")
    return {
        "OCL_ICD_VENDORS": str(vendors),
        "LD_LIBRARY_PATH": folders,
        "POCL_CACHE_DIR": str(folder / "cache"),
        "PYOPENCL_NO_CACHE": "1",
    }


def unpacked(folder: Path) -> Path:
    """Return libpocl of Debian's package and all it needs, unpacked below `folder`.

    Raises
    ------
    PeerAbsentError
        Where there is no apt, or it does not know the package.
    """
    root = folder / "root"
    if not (root / "complete").exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            raise PeerAbsentError(f"needs Debian's {PACKAGE}, and there is no apt-get here")
        # Lists and archives of its own: the system's stay as they are.
        for name in ("lists/partial", "archives/archives/partial", "debs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        places = {"Dir::State::Lists": folder / "lists", "Dir::Cache": folder / "archives"}
        apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]
        for name, place in places.items():
            apt += ["-o", f"{name}={place}"]
        command([*apt, "update"])
        plan = command([*apt, "install", "--simulate", "--no-install-recommends", PACKAGE])
        names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        command([*apt, "download", *names], cwd=folder / "debs")
        for package in sorted((folder / "debs").glob("*.deb")):
            command(["dpkg", "--extract", str(package), str(root)])
        (root / "complete").touch()
    found = sorted(root.glob("usr/lib/*/libpocl.so.*"))
    if not found:
        raise PeerAbsentError(f"no libpocl in {PACKAGE}")
    return found[0]


PEER = Peer("pocl", "PoCL", "pyopencl", ("pyopencl==2026.1.4",), prepare)
