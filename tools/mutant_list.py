"""The lists of faults for tools/mutants.py: what an entry says, which tests it concerns, whether it applies."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # CPython 3.10; pytest brings it
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parent.parent
HANDLES, EXTENSION = (Path("python", "halstream", f"{name}.abi3.so") for name in ("_core/_handles", "_halstream"))


#: In place of a prefix: all tests of a package, which knows no clauses.
ALL = "."


@dataclass(frozen=True)
class Mutant:
    """One entry: the fault, and the clause whose test must fail."""

    name: str
    file: str
    old: str
    new: str
    clause: str
    after: str = ""  # `old` is looked for behind this text only

    @property
    def of_torch(self) -> bool:
        """Whether the file belongs to the module for the real torch, or to its redirection."""
        return self.file.startswith(("torch/", "python/halstream/torch/_redirect/"))

    @property
    def of_paddle(self) -> bool:
        """Whether the file belongs to the plug-in for the real Paddle."""
        return self.file.startswith(("paddle/", "python/halstream/paddle/plugin/"))

    @property
    def module(self) -> Path | None:
        """The compiled module through which the tests of Python see the file; None where they need none to be built.

        Files in Go of the extension are built for faults that no Go test of the package could detect.
        """
        if Path(self.file).name.startswith("_handles"):
            return HANDLES
        if self.file.partition("/")[0] not in ("bindings", "capi", "pybuild") or self._of_ascendcl():
            return None
        return None if self.file.endswith(".go") and self.tested_in(self.file.rpartition("/")[0]) else EXTENSION

    def _of_ascendcl(self) -> bool:
        """Return whether the clause is one of libascendcl's, which Python does not see."""
        return self.clause.startswith("N") and self.file.startswith(("bindings/", "libascendcl/"))

    def tested_in(self, folder: str) -> bool:
        """Return whether Go tests of a package have the name of the clause."""
        return any(f"func Test{self.clause}_" in p.read_text() for p in (ROOT / folder).glob("*_test.go"))

    def groups(self) -> list[tuple[str, ...]]:
        """Return where tests of the clause are: Go packages and the names to run, or Python files."""
        if self.of_torch:
            files = files_of(self.clause, "torch")
            return [("torch", *files)] if files else []
        if self.of_paddle:
            files = files_of(self.clause, "paddle_real")
            return [("paddle", *files)] if files else []
        if not self.file.endswith((".go", ".c", ".h")) or self.module:
            files = self._of_dialect() or files_of(self.clause)
            return [("pytest", *files)] if files else []
        folder = "libascendcl" if self._of_ascendcl() else self.file.split("/")[0]
        own: list[tuple[str, ...]] = [("go", f"./{folder}", "^")] if self.tested_in(folder) else []
        programs = {"libascendcl": "ascend", "libcuda": "libcuda"}.get(folder)
        if programs:  # they are built from the copy by fixtures of these tests
            files = files_of(self.clause, programs)
            return [*own, ("pytest", *files)] if files else own
        if self.file.startswith("hal/vendor/"):
            shared = [("go", "./hal/vendor", "^")] if self.tested_in("hal/vendor") else []
            return [*shared, *(group for backend in ("cuda", "ascend") for group in self._of_backend(backend))]
        if folder in ("cuda", "ascend"):
            return self._of_backend(folder)
        if folder == "ptx":
            return [("go", "./ptx", ALL)]
        return go_tests(self.clause)

    def _of_backend(self, folder: str) -> list[tuple[str, ...]]:
        """Return where a backend has tests of the clause: its cases on the look-alike, and tests of its own."""
        own = [("go", f"./{folder}", "^")] if self.tested_in(folder) else []
        return [("go", f"./{folder}", "LookAlike/^"), *own]

    def _of_dialect(self) -> tuple[str, ...]:
        """Return the dialect's own files with tests of the clause, none for a file that belongs to no dialect."""
        package, _, rest = self.file.removeprefix("python/halstream/").partition("/")
        return (
            files_of(self.clause, "dialects", named=f"test_{package}_*.py")
            if rest and self.file.endswith(".py")
            else ()
        )

    def apply(self, text: str) -> str:
        """Return the text with the fault in it."""
        head, mark, tail = text.partition(self.after) if self.after else ("", "", text)
        if self.after and not mark:
            raise ValueError(f"{self.file} has no {self.after!r}")
        found = tail.count(self.old)
        if found != 1 and not (found and self.after):
            raise ValueError(f"{self.file} has {self.old!r} {found} times, not once")
        return head + mark + tail.replace(self.old, self.new, 1)


@functools.cache
def files_of(clause: str, *only: str, named: str = "test_*.py") -> tuple[str, ...]:
    """Return the test files of Python, of these names, with tests of a clause."""
    test = re.compile(rf"def test_{clause}_")
    folders = (ROOT / "tests" / folder for folder in only or ("conformance", "capi", "ascend", "trust"))
    found = [p for folder in folders for p in sorted(folder.glob(named)) if test.search(p.read_text())]
    return tuple(str(p.relative_to(ROOT)) for p in found)


@functools.cache
def go_tests(clause: str) -> list[tuple[str, ...]]:
    """Return where Go tests of a clause are: conformance cases first, then tests of single packages."""
    case, test = f'"{clause}_', re.compile(rf"^func Test{clause}_", re.MULTILINE)
    found = []
    if any(case in path.read_text() for path in (ROOT / "hal" / "haltest").glob("*.go")):
        found.append(("go", "./hal/host", "Conformance/^"))
    folders = ("hal", "bindings", "capi", "pybuild", "cuda")
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*_test.go"))
    packages = {f"./{path.parent.relative_to(ROOT)}" for path in paths if test.search(path.read_text())}
    return [*found, *(("go", package, "^") for package in sorted(packages))]


def entries(path: Path) -> list[Mutant]:
    """Return the list of a file."""
    return [Mutant(**entry) for entry in tomllib.loads(path.read_text())["mutant"]]


def problems(mutants: list[Mutant], path_of_list: Path, fix: bool = False) -> list[str]:
    """Return why entries do not apply; let those follow their text that moved, if asked to."""
    found = []
    for mutant in mutants:
        path = ROOT / mutant.file
        try:
            if mutant.apply(path.read_text() if path.exists() else "") == path.read_text():
                raise ValueError("it changes nothing")
            if not mutant.groups():
                raise ValueError(f"no test is named for {mutant.clause}")
        except (ValueError, OSError) as exc:
            moved = places(mutant)
            if fix and len(moved) == 1:
                follow(mutant, moved[0], path_of_list)
                print(f"mutants: {mutant.name!r} is now in {moved[0]}")
                continue
            where = f"; it would apply to {', '.join(moved)} (--fix)" if moved else ""
            found.append(f"{mutant.clause} {mutant.name!r} does not apply: {exc}{where}")
    repeated = {m.name for m in mutants if sum(m.name == other.name for other in mutants) > 1}
    return found + [f"{name!r} is the name of two entries" for name in sorted(repeated)]


def places(mutant: Mutant) -> list[str]:
    """Return the other files that an entry would apply to."""
    top, suffix = mutant.file.partition("/")[0], Path(mutant.file).suffix
    found = []
    for path in sorted((ROOT / top).rglob(f"*{suffix}")):
        text = path.read_text()
        if mutant.old in text and not path.name.endswith("_test.go"):
            try:
                mutant.apply(text)
            except ValueError:
                continue
            found.append(str(path.relative_to(ROOT)))
    return found


def follow(mutant: Mutant, file: str, path: Path) -> None:
    """Change the file of an entry."""
    head, name, tail = path.read_text().partition(f'name = "{mutant.name}"\n')
    path.write_text(head + name + tail.replace(f'file = "{mutant.file}"', f'file = "{file}"', 1))
