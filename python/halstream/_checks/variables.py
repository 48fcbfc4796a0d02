"""What the program's variables stood for at its calls: a report prints only names that were evaluated.

While a check is on, the extension calls `_look` for the first few calls of each call site, on the thread that calls and
while the frames are as they were in the call. Of each variable that is a stream, an event or memory, and of what
containers and attributes have of these, the name is kept with the numbers of the object; no object is. Nothing of the
program runs for it: no property, no `__getattr__`.
"""

from __future__ import annotations

import dis
import re
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import _core, _native, _sites
from .._core._handlers import raise_of_handler
from .._memory._array import Array
from .._runtime import State, runtime
from .finding import Frame

__all__ = [
    "CURRENT",
    "Key",
    "Names",
    "at",
    "begin",
    "end",
    "event_key",
    "iterates",
    "leaves",
    "memory_within",
    "stood_for",
    "stream_key",
]

#: What an object is, and its numbers: of a stream device and index, of an event its id, of memory its address.
Key = tuple[str, int, int]

#: How many frames of a call are looked at, and how many objects in each.
_FRAMES = 12
_OBJECTS = 300
#: How many elements of a container, and how many attributes in each other.
_ELEMENTS = 8
_DEPTH = 2
#: Torch's expression for the stream of an operator, in the frame that calls the operator itself.
CURRENT = "torch.cuda.current_stream()"
#: How many calls are looked at in one check.
_LOOKS = 20_000

_STREAM, _EVENT, _MEMORY, _MODEL, _CONTAINER, _NAMESPACE, _NOTHING = range(7)
_PLAIN = (
    int, float, complex, str, bytes, bytearray, type(None), types.ModuleType, types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.CodeType, types.FrameType, types.GeneratorType,
    types.CoroutineType,
)  # fmt: skip
#: What stands between the arguments of a call and the call.
_BETWEEN = ("PRECALL", "CACHE", "EXTENDED_ARG")
_FIRST = re.compile(r"[.\[]")  # what ends the variable that a name begins with
_HEAP = 1 << 9  # the flag of classes that are written in Python


class Names:
    """What the names that can be used at a place stood for, at the calls that the place led to."""

    def __init__(self) -> None:
        self.looks = 0
        self._names: dict[Key, list[str]] = {}
        self._found: dict[str, int] = {}  # at how many looks a name stood for anything
        self._keys: dict[str, int] = {}  # for how many objects a name stood

    def add(self, found: Mapping[str, Key]) -> None:
        """Add what was found at one call."""
        self.looks += 1
        for name, key in found.items():
            self._found[name] = self._found.get(name, 0) + 1
            names = self._names.setdefault(key, [])
            if name not in names:
                names.append(name)
                self._keys[name] = self._keys.get(name, 0) + 1

    def of(self, key: Key, varying: bool = False) -> list[str]:
        """Return the names that stood for an object at each call; with `varying` at one, and for others at the rest."""
        return [
            name
            for name in self._names.get(key, ())
            if self._found[name] == self.looks and (varying or self._keys[name] == 1)
        ]

    def within(self, start: int, nbytes: int) -> list[str]:
        """Return the names that stood for memory at each call, and at one for some in a range."""
        found: list[str] = []
        for what, address, _ in self._names:
            if what == "memory" and start <= address < start + nbytes:
                found += self.of((what, address, 0), varying=True)
        return found


class _Looked(State):
    """What was looked at during the check that is on."""

    def __init__(self) -> None:
        self.places: dict[Frame, Names] = {}
        self.pairs: set[tuple[str, Key]] = set()  # names with what they stood for, anywhere
        # The code and the instruction of frames of call sites.
        self.calls: dict[tuple[int, Frame], tuple[types.CodeType, int]] = {}
        self.positions: dict[int, list[tuple[int | None, int | None]]] = {}  # of the instructions of code, by its id
        self.kinds: dict[type, int] = {}
        self.attributes: dict[type, list[tuple[str, Any]]] = {}
        self.numbers: dict[int, tuple[int, int]] = {}  # device and index of streams, by id
        self.left = 0


_looked = runtime.add("what variables stood for", _Looked())


def begin() -> None:
    """Forget what was looked at, and look from now on."""
    _looked.places.clear()
    _looked.pairs.clear()
    _looked.calls.clear()
    _looked.positions.clear()
    _looked.left = _LOOKS
    _native.position_look(id(_look))


def end() -> None:
    """Look no longer; what was found stays until the next check begins."""
    _native.position_look(0)
    _looked.kinds.clear()
    _looked.attributes.clear()
    _looked.numbers.clear()


def stream_key(device: int, index: int) -> Key:
    """Return the key of a stream."""
    return "stream", device, index


def event_key(number: int) -> Key:
    """Return the key of an event."""
    return "event", number, 0


def at(place: Frame) -> Names | None:
    """Return the names at a place, None where nothing was looked at."""
    return _looked.places.get(place)


def stood_for(name: str, key: Key) -> bool:
    """Return whether a name stood for an object somewhere."""
    return (name, key) in _looked.pairs


def memory_within(place: Frame, start: int, nbytes: int) -> list[str]:
    """Return the names at a place of memory in a range."""
    names = at(place)
    return names.within(start, nbytes) if names else []


def leaves(site: int, frame: Frame) -> bool:
    """Return whether a frame of a call site leaves a block of `with` there, whose first line it names."""
    call = _looked.calls.get((site, frame))
    return call is not None and _leaves_block(*call)


def position(site: int, frame: Frame) -> tuple[int, int]:
    """Return line and column of what a frame of a call site calls: the column is -1 where that is not known."""
    call = _looked.calls.get((site, frame))
    if call is None or sys.version_info < (3, 11):
        return frame.line, -1
    code, offset = call
    if id(code) not in _looked.positions:  # `calls` keeps the code
        _looked.positions[id(code)] = [(line, column) for line, _, column, _ in code.co_positions()]
    line, column = _looked.positions[id(code)][offset // 2]
    return (line, column) if line is not None and column is not None else (frame.line, -1)


def iterates(site: int, frame: Frame) -> bool:
    """Return whether a frame of a call site asks for the next turn of a loop there, whose first line it names."""
    call = _looked.calls.get((site, frame))
    return call is not None and _before(*call)[-1][0] == "FOR_ITER"


def _look(site: int) -> None:
    """Note what the variables of the frames that called stand for."""
    if _is_followed():
        return
    try:
        _note(sys._getframe(1), site)
    except Exception as error:
        raise_of_handler(error)


def _is_followed() -> bool:
    """Return whether a function in Python traces or profiles the thread.

    Before CPython 3.13 a frame's variables are copied into its dictionary for such a function, and back behind it: what
    is read here in between, as a debugger may call the runtime, would undo what the function set, or unset them all.
    """
    if sys.version_info >= (3, 13):
        return False
    for one in (sys.gettrace(), sys.getprofile()):
        if isinstance(one, (types.FunctionType, types.MethodType)) or type(one).__flags__ & _HEAP:
            return True
    return False


def _note(frame: types.FrameType | None, site: int) -> None:
    if _looked.left <= 0:
        return
    _looked.left -= 1
    modules: dict[int, dict[str, Key]] = {}
    left, direct = _FRAMES, _sites.real_torch.current is not None
    while frame is not None and left > 0:
        code = frame.f_code
        if _sites.is_program(code.co_filename):
            left -= 1
            place = Frame(code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name))
            _looked.calls[site, place] = code, frame.f_lasti
            if id(frame.f_globals) not in modules:
                modules[id(frame.f_globals)] = _found_in(frame.f_globals, 1)
            found = modules[id(frame.f_globals)]
            if code.co_flags & _sites.OPTIMIZED:
                names = code.co_varnames + code.co_cellvars + code.co_freevars
                found = {**_not_hidden(found, names, frame.f_globals), **_found_in(_sites.variables(frame), _DEPTH)}
            elif type(frame.f_locals) is dict and frame.f_locals is not frame.f_globals:  # the body of a class
                found = {**_not_hidden(found, frame.f_locals, frame.f_globals), **_found_in(frame.f_locals, _DEPTH)}
            if direct and _sites.real_torch.current is not None:
                found = {**found, CURRENT: _stream(_sites.real_torch.current())}
            known = _looked.places.get(place)
            if known is None:
                known = _looked.places[place] = Names()
            known.add(found)
            _looked.pairs.update(pair for pair in found.items() if pair[1][0] != "memory")
        direct = False
        frame = frame.f_back


def _not_hidden(found: dict[str, Key], names: Iterable[str], variables: Mapping[str, Any]) -> dict[str, Key]:
    """Return the names of a module without those of a scope in it, which mean something else or nothing there."""
    hidden = {name for name in names if name in variables}
    if not hidden:
        return found
    return {name: key for name, key in found.items() if _FIRST.split(name, 1)[0] not in hidden}


def _found_in(variables: Mapping[str, Any], depth: int) -> dict[str, Key]:
    """Return names, and those of attributes and elements, with what they stand for."""
    found: dict[str, Key] = {}
    kinds = _looked.kinds
    for name, value in list(variables.items()):
        whole = type(value)
        kind = kinds.get(whole)
        if kind is None:
            kind = _kind(whole)
        if kind == _NOTHING and whole is not int:
            continue
        if name.isidentifier() and not name.startswith("__"):
            _add(found, name, value, kind, depth)
            if len(found) > _OBJECTS:
                break
    return found


def _add(found: dict[str, Key], name: str, value: Any, kind: int, depth: int) -> None:
    """Add what a value, its attributes and its elements stand for, by the name of the value."""
    if kind == _NOTHING:
        if type(value) is int and value > 2 and (key := _of_handle(value)):
            found[name] = key
    elif kind < _CONTAINER:
        if key := _key(value, kind):
            found[name] = key
    elif kind == _CONTAINER:
        items = list(value.items()) if type(value) is dict else list(enumerate(value))
        for place, one in items[:_ELEMENTS]:
            if type(place) in (int, str) and (inner := _kind(type(one))) != _NOTHING:
                _add(found, f"{name}[{place!r}]", one, inner, min(depth, 1) - 1)
    elif depth > 0:
        for attribute, one in _attributes(value):
            if (inner := _kind(type(one))) != _NOTHING and len(found) <= _OBJECTS:
                _add(found, f"{name}.{attribute}", one, inner, depth - 1)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that can be had without running the program's code."""
    whole = type(value)
    own = _dictionary(value)
    for name, one in list(own.items())[:_OBJECTS]:
        if type(name) is str and name.isidentifier():
            yield name, one
    if whole not in _looked.attributes:
        _looked.attributes[whole] = _of_class(whole)
    for name, slot in _looked.attributes[whole]:
        if name in own:
            continue
        try:
            yield name, whole.__dict__[name] if slot is None else slot.__get__(value, whole)
        except (AttributeError, KeyError):
            continue


def _of_class(whole: type) -> list[tuple[str, Any]]:
    """Return the names of what a class of the program has for its objects, and the slots of those that are in slots."""
    found: list[tuple[str, Any]] = []
    for one_class in whole.__mro__[:-1]:
        if _of_program(one_class):
            for name, one in list(vars(one_class).items())[:_OBJECTS]:
                if type(one) is types.MemberDescriptorType:
                    found.append((name, one))
                elif one_class is whole and not name.startswith("__") and not callable(one) and not _is_descriptor(one):
                    found.append((name, None))
    return found


def _is_descriptor(one: Any) -> bool:
    return any("__get__" in vars(one_class) for one_class in type(one).__mro__)


def _dictionary(value: Any) -> dict[str, Any]:
    own_way: Callable[[Any, str], Any] = object.__getattribute__
    if issubclass(type(value), threading.local):
        # Each thread has its own attributes of one, and where a class says how they begin its code runs to make them.
        if type(value).__init__ is not object.__init__:
            return {}
        own_way = threading.local.__getattribute__
    try:
        own = own_way(value, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


def _of_program(one: type) -> bool:
    name = _module_of(one)
    module = sys.modules.get(name)
    file = _dictionary(module).get("__file__")
    return _sites.is_program(file) if type(file) is str and file else module is None or name == "__main__"


def _module_of(one: type) -> str:
    """Return the name of a class's module, without running the code of the class's own class."""
    name = type.__getattribute__(one, "__module__")
    return name if type(name) is str else ""


def _kind(whole: type) -> int:
    kind = _looked.kinds.get(whole)
    if kind is None:
        kind = _looked.kinds[whole] = _kind_of(whole)
    return kind


def _kind_of(whole: type) -> int:
    if issubclass(whole, _core.Stream):
        return _STREAM
    if issubclass(whole, _core.Event):
        return _EVENT
    if issubclass(whole, Array):
        return _MEMORY
    if _sites.real_torch.is_object(whole):
        return _MODEL
    if whole is list or whole is tuple or whole is dict:
        return _CONTAINER
    if issubclass(whole, (_PLAIN, type)) or _module_of(whole) in ("builtins", "numpy"):
        return _NOTHING
    return _NAMESPACE


def _key(value: Any, kind: int) -> Key | None:
    try:
        if kind == _STREAM:
            return _stream(value._id)
        if kind == _EVENT:
            return event_key(_native.event_number(value._id))
        if kind == _MEMORY:
            return "memory", value.ptr, 0
        what, number = _sites.real_torch.number_of(value)
        if what == "stream":
            return _stream(number)
        if what == "event":
            return event_key(_native.event_number(number) if number else 0)
        return (what, number, 0) if what else None
    except Exception as error:  # it is closed, or not made completely
        raise_of_handler(error)
        return None


def _stream(number: int) -> Key:
    if number not in _looked.numbers:
        _looked.numbers[number] = _native.stream_device(number), _native.stream_index(number)
    return stream_key(*_looked.numbers[number])


def _of_handle(value: int) -> Key | None:
    """Return what a handle of AscendCL is of."""
    table = sys.modules.get("halstream.acl._table")
    one = table.objects.get(value) if table is not None else None
    return _key(one, _kind(type(one))) if isinstance(one, (_core.Stream, _core.Event)) else None


def _before(code: types.CodeType, offset: int) -> list[tuple[str, int]]:
    """Return the last four instructions of a code up to an offset, with their arguments."""
    raw, found, at = code.co_code, list[tuple[str, int]](), offset
    while at >= 0 and len(found) < 4:
        name, argument = dis.opname[raw[at]], raw[at + 1]
        if not found or name not in _BETWEEN:
            for place, shift in ((at - 2, 8), (at - 4, 16)):
                if place < 0 or dis.opname[raw[place]] != "EXTENDED_ARG":
                    break
                argument |= raw[place + 1] << shift
            found.append((name, argument))
        at -= 2
    return found[::-1]


def _leaves_block(code: types.CodeType, offset: int) -> bool:
    """Return whether the instruction of a code calls the `__exit__` of a block of `with`.

    Its line is the first one of the block. The call has three times None behind the function, which no constant is.
    """
    *arguments, (call, count) = _before(code, offset)
    if call == "WITH_EXCEPT_START":
        return True
    nones = [name == "DUP_TOP" or (name == "LOAD_CONST" and code.co_consts[place] is None) for name, place in arguments]
    return (
        call in ("PRECALL", "CALL", "CALL_FUNCTION")
        and count == (2 if (3, 11) <= sys.version_info < (3, 14) else 3)
        and nones == [True] * 3
    )
