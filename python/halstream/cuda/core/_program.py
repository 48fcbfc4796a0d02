"""Program, which compiles a source, and its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..._core._strict import strict
from ..._errors import CompileError, NotSupportedError
from ..._kernel import _nvrtc
from ._arguments import missing_property, options_of
from ._device import Device
from ._errors import NVRTCError, closed
from ._module import ObjectCode

__all__ = ["Program", "ProgramOptions"]

_KINDS = ("c++", "ptx", "nvvm")
_TARGETS = {"NVRTC": ("ptx", "cubin", "ltoir"), "driver": ("cubin", "ptx")}

# How NVRTC spells options whose name is not that of the field.
_SPELLED = {
    "debug": "--device-debug",
    "fma": "--fmad",
    "lineinfo": "--generate-line-info",
    "link_time_optimization": "--dlink-time-opt",
    "max_register_count": "--maxrregcount",
    "ofast_compile": "--Ofast-compile",
    "use_fast_math": "--use_fast_math",
}
# Options that are given with true or false.
_SWITCHES = frozenset(
    {
        "brief_diagnostics", "builtin_initializer_list", "builtin_move_forward", "fma", "ftz",
        "instantiate_templates_in_pch", "pch_messages", "pch_verbose", "prec_div", "prec_sqrt",
        "relocatable_device_code",
    }
)  # fmt: skip
# Options that are given once, if they are wanted.
_FLAGS = frozenset(
    {
        "debug", "device_as_default_execution_space", "device_float128", "device_int128", "disable_warnings",
        "extensible_whole_program", "extra_device_vectorization", "fdevice_syntax_only", "gen_opt_lto",
        "lineinfo", "link_time_optimization", "minimal", "no_cache", "no_display_error_number",
        "no_source_include", "numba_debug", "pch", "restrict", "use_fast_math",
    }
)  # fmt: skip
# Options that are given once for each of several texts.
_LISTS = frozenset({"ptxas_options", "undefine_macro", "include_path", "pre_include"})
# Options that are given once for each of several values.
_REPEATED = frozenset({"diag_error", "diag_suppress", "diag_warn"})
# What belongs to other compilers.
_ELSEWHERE = frozenset({"name", "arch", "extra_sources", "use_libdevice", "use_bundled_headers"})


@dataclass
class ProgramOptions:
    """cuda.core.ProgramOptions (1.2.2); `as_bytes` has the options of NVRTC."""

    name: str | None = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: str | list[str] | tuple[str, ...] | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: Any = None
    undefine_macro: str | list[str] | tuple[str, ...] | None = None
    include_path: str | list[str] | tuple[str, ...] | None = None
    use_bundled_headers: bool | None = None
    pre_include: str | list[str] | tuple[str, ...] | None = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: int | list[int] | tuple[int, ...] | None = None
    diag_suppress: int | list[int] | tuple[int, ...] | None = None
    diag_warn: int | list[int] | tuple[int, ...] | None = None
    brief_diagnostics: bool | None = None
    time: str | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: str | None = None
    device_float128: bool | None = None
    frandom_seed: str | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: str | None = None
    use_pch: str | None = None
    pch_dir: str | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: Any = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise AttributeError(f"{type(self.name).__name__!r} object has no attribute 'encode'")
        if self.arch is None:
            self.arch = f"sm_{Device().arch}"

    def as_bytes(self, backend: str, target_type: str | None = None) -> list[bytes]:
        """Return the options as the compiler `backend` takes them, "nvrtc"."""
        if backend == "nvvm":
            raise NotSupportedError("compilations by NVVM are not built yet", operation="compile")
        if backend != "nvrtc":
            raise ValueError(f"Unknown backend {backend!r}. Must be one of: 'nvrtc', 'nvvm'")
        return [f"-arch={self.arch}".encode(), *(word.encode() for word in self._words())]

    def _words(self) -> list[str]:
        """Return the options of NVRTC without the architecture."""
        found: list[str] = []
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if value is None or name in _ELSEWHERE:
                continue
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            if name in _SWITCHES:
                found.append(f"{option}={'true' if value else 'false'}")
            elif name in _FLAGS:
                found += [option] if value else []
            elif name == "device_code_optimize":
                found += ["--dopt=on"] if value else []
            elif name == "define_macro":
                found += [f"{option}={macro}" for macro in _macros(value)]
            elif name in _LISTS:
                found += [f"{option}={text}" for text in _several(value) if not isinstance(text, (bool, int))]
            elif name in _REPEATED:
                found += [f"{option}={one}" for one in _several(value)]
            else:
                found.append(f"{option}={value}")
        if self.use_bundled_headers:
            raise RuntimeError("use_bundled_headers requires NVRTC >= 13.3, which is not built")
        return found

    def __repr__(self) -> str:
        return f"ProgramOptions(name={self.name!r}, arch={self.arch!r})"


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _macros(value: Any) -> list[str]:
    """Return the macros of an option as the compiler takes them."""
    given = value if isinstance(value, list) else [value]
    found = []
    for macro in given:
        if isinstance(macro, tuple):
            name, meaning = macro
            found.append(f"{name}={meaning}")
        elif isinstance(macro, str):
            found.append(macro)
        else:
            raise RuntimeError(
                f"Expected define_macro Union[str, tuple[str, str]], list[Union[str, tuple[str, str]]], got {value}"
            )
    return found


class Program:
    """cuda.core.Program (1.2.2): a source in C++, which NVRTC compiles, or PTX.

    Differences: PTX is assembled where it is loaded, so that both targets of it are the PTX; NVVM, LTO,
    caches and precompiled headers are not built. Results of NVRTC are kept in the folder HALSTREAM_CACHE_DIR.
    """

    def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
        kind = code_type.lower() if isinstance(code_type, str) else code_type
        self._options: ProgramOptions = options_of(ProgramOptions, options, "Program")
        if kind not in _KINDS:
            raise RuntimeError(f"Unsupported code_type='{code_type}' (supported_code_types={_KINDS})")
        if kind == "nvvm":
            raise NotSupportedError("programs of NVVM are not built yet", operation="compile")
        if not isinstance(code, str):
            raise TypeError(f"Expected type str, but got {type(code).__name__}")
        self._code = code
        self._kind: str = kind
        self._closed = False

    @property
    def backend(self) -> str:
        """What compiles it: "NVRTC", or "driver" for PTX."""
        return "NVRTC" if self._kind == "c++" else "driver"

    handle = missing_property("cuda.core.Program.handle")

    @property
    def pch_status(self) -> None:
        """None: precompiled headers are not built."""
        return

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def close(self) -> None:
        """Give the program up; what was made of it stays."""
        self._closed = True

    def compile(
        self, target_type: str, name_expressions: Sequence[str] = (), logs: Any = None, *, cache: Any = None
    ) -> ObjectCode:
        """Return the program as "ptx" or "cubin"; `logs` is a file that is given the compiler's words."""
        if self._closed:
            raise closed("Program")
        target = target_type.lower()
        if target not in _TARGETS[self.backend]:
            raise ValueError(
                f'Unsupported target_type="{target_type}" for {self.backend} (supported: '
                f"{', '.join(_TARGETS[self.backend])})"
            )
        if cache is not None:
            raise NotSupportedError("caches of programs are not built yet", operation="compile")
        if target == "ltoir":
            raise NotSupportedError("LTO is not built yet", operation="compile")
        name = self._options.name or ""
        if self._kind == "ptx":
            return ObjectCode._of(self._code.encode(), target, name, None)
        made = self._compiled(
            target, (name_expressions,) if isinstance(name_expressions, str) else name_expressions, logs
        )
        names = {expression: lowered.encode() for expression, lowered in made.names.items()}
        return ObjectCode._of(made.code, target, name, names)

    def _compiled(self, target: str, names: Sequence[str], logs: Any) -> _nvrtc.Program:
        arch = str(self._options.arch)
        architecture = arch.replace("sm_", "compute_") if target == "ptx" else arch.replace("compute_", "sm_")
        try:
            made = _compile(
                self._code,
                names,
                architecture,
                self._options._words(),
                title=f"program {self._options.name}",
                fresh=logs is not None,
            )
        except CompileError as exc:
            if logs is not None and exc.log:
                logs.write(exc.log)
            raise NVRTCError(
                f"{exc.code}: {'NVRTC_ERROR_COMPILATION, compilation log:' if exc.log else ''}\n\n{exc.log or exc}",
                code=exc.code,
                operation="compile",
                log=exc.log,
            ) from exc
        if logs is not None and made.log:
            logs.write(made.log)
        return made

    def __repr__(self) -> str:
        return f"<Program backend='{self.backend}'>"


_compile = _nvrtc.compile_program

for _class in (Program, ProgramOptions):
    _class.__module__ = "halstream.cuda.core"
    strict.add(_class)
