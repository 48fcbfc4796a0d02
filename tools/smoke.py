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
#: CPythons without the stable interface, which this wheel is not for (tools/wheels_free_threaded.py).
FREE_THREADED = ("3.13t", "3.14t")
CALL = "import sys; from halstream import _halstream as ext; print('ok', sys.version.split()[0], ext.pybuild_Version())"


def works(python, version):
    """Whether this runs and is the version its name says (pyenv's shims may not be)."""
    ask = (
        "import sys, sysconfig; t = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else '';"
        "print('%d.%d%s' % (*sys.version_info[:2], t))"
    )
    answer = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    return answer.returncode == 0 and answer.stdout.strip() == version


def tag(version):
    """Return the tag of a version's interface in the names of wheels: cp314t for 3.14t."""
    return "cp" + version.replace(".", "")


def find(version):
    """Return the path of an interpreter of a version, such as 3.13 or 3.13t, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    plain = version.rstrip("t")
    pattern = f"{plain}.*{version[len(plain) :]}/bin/python"  # pyenv's names are 3.13.0 and 3.13.0t
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(pattern), reverse=True)]
    return next((str(python) for python in candidates if python and works(python, version)), None)


def pip(inside, version):
    """Return the first words of a command with pip for an environment that was made without it."""
    mine = [sys.executable, "-m", "pip", "--python", inside]
    if version not in FREE_THREADED:
        return mine
    # Older ones, such as that of this interpreter may be, know no tags of free-threaded versions.
    subprocess.run([*mine, "install", "--quiet", "pip>=24.1"], check=True)
    return [inside, "-m", "pip"]


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
            # Wheels only: the smoke test must not compile anything.
            command = [*pip(inside, version), "install", "--quiet", "--only-binary", ":all:", str(wheel)]
            subprocess.run(command, check=True)
            subprocess.run([inside, "-c", CALL], check=True, cwd=folder)
            called += 1
    if called == 0:
        raise SystemExit(f"smoke: none of CPython {', '.join(VERSIONS)} is installed")


if __name__ == "__main__":
    main(*sys.argv[1:])
