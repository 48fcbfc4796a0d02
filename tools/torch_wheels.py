"""Packs the module for the real torch into wheels that need no compiler: dist/torch/halstream_torch-*.whl.

Usage: python tools/torch_wheels.py [VERSION ...]   (default: all supported versions of torch)

One wheel fits one version of halstream, of torch and of CPython. It is built with the interpreter that
runs this, in the environments of tools/torch_env.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import torch_env

#: Not dist itself, which `make wheel` empties.
DIST = torch_env.ROOT / "dist" / "torch"
PACKAGE = "halstream_torch"
FIND = "from halstream.torch._redirect import module, wheel; print(module.build(wheel.installed())[0])"
SUMMARY = "The module of halstream for one version of PyTorch, compiled"


def pack(folder: Path, target: Path) -> Path:
    """Write a wheel with the module of a folder into another folder; return its path."""
    about = json.loads((folder / "about.json").read_text())
    version, torch, python, _ = about["build"]
    torch = torch.partition("/")[0].partition("+")[0]
    version = f"{version}+torch{torch}"
    # cpython-311-x86_64-linux-gnu
    tag = "cp" + python.split("-")[1]
    platform = "linux_" + python.split("-")[2] if "linux" in python else "macosx_11_0_" + os.uname().machine
    info = f"{PACKAGE}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: halstream-torch\nVersion: {version}\nSummary: {SUMMARY}\n"
    metadata += f"License: Apache-2.0\nRequires-Dist: torch=={torch}\nRequires-Dist: halstream=={about['build'][0]}\n"
    described = f"Wheel-Version: 1.0\nGenerator: halstream\nRoot-Is-Purelib: false\nTag: {tag}-{tag}-{platform}\n"
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    files[f"{PACKAGE}/__init__.py"] = f'"""{SUMMARY}; halstream finds it here."""\n'.encode()
    files[f"{info}/METADATA"], files[f"{info}/WHEEL"] = metadata.encode(), described.encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{PACKAGE}-{version}-{tag}-{tag}-{platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return path


def main(versions: list[str]) -> int:
    for version in versions or torch_env.SUPPORTED:
        python = torch_env.environment(version)
        torch_env.built(python)
        command = [python, "-c", FIND]
        done = subprocess.run(
            command, cwd=torch_env.BUILD, env=torch_env.settings(), check=True, stdout=subprocess.PIPE, text=True
        )
        path = pack(Path(done.stdout.splitlines()[-1]).parent, DIST)
        print(f"torch: {path.relative_to(torch_env.ROOT)}, {path.stat().st_size / 1e6:.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
