"""Installs a wheel into a fresh environment of each CPython and calls it once.

Usage: python tools/smoke.py WHEEL. Looks for python3.10 to python3.14 on PATH
and among pyenv's versions; one that is not found is named as skipped, and it
is an error if there is none at all.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
CALL = "import sys; from halstream import _halstream as ext; print('ok', sys.version.split()[0], ext.pybuild_Version())"


def works(python, version):
    """Whether this runs and is the version its name says (pyenv's shims may not be)."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    return answer.returncode == 0 and answer.stdout.strip() == version


def find(version):
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
    return next((str(python) for python in candidates if python and works(python, version)), None)


def main(wheel):
    wheel, called = Path(wheel).resolve(), 0
    for version in VERSIONS:
        python = find(version)
        if python is None:
            print(f"skipped CPython {version}: not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            # By the pip of this interpreter: some distributions take ensurepip out of theirs.
            subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
            inside = f"{folder}/bin/python"
            pip = [sys.executable, "-m", "pip", "--python", inside]
            # Wheels only: the smoke test must not compile anything.
            command = [*pip, "install", "--quiet", "--only-binary", ":all:", str(wheel)]
            subprocess.run(command, check=True)
            subprocess.run([inside, "-c", CALL], check=True, cwd=folder)
            called += 1
    if called == 0:
        raise SystemExit(f"smoke: none of CPython {', '.join(VERSIONS)} is installed")


if __name__ == "__main__":
    main(*sys.argv[1:])
