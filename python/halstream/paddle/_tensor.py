"""`paddle.Tensor` of 3.3, the part that stream programs use: NumPy on the current stream."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import _current
from .._dialects._compute import upload
from .._dialects._not_built import attribute_error
from .._dialects._operate import copy_into
from .._dialects._tensor import Contents, Storage
from ._dtype import dtype, get_default_dtype, of, to_numpy
from ._methods import Methods
from ._names import convert_to_place, device_to_place, expected_place
from ._place import Place
from ._places import CPUPlace
from ._printing import text

_names = itertools.count()


class Size(list[int]):
    """`paddle.Size` of 3.3: a list that equals tuples of the same lengths, too."""

    def __repr__(self) -> str:
        return f"paddle.Size({list(self)})"

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def numel(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self, dtype=int))


class Tensor(Methods, Contents):
    """`paddle.Tensor` of 3.3: the operations that stream programs use.

    Operations on a tensor of a device are enqueued on that device's current stream and
    return at once; ``print``, `numpy` and `item` wait for the stream that made the
    contents. A tensor on a CPUPlace is computed by the caller. Differences: no gradients
    (`stop_gradient` is kept and means nothing), no bfloat16, and `numpy` copies.
    """

    __hash__: Callable[[], int] = object.__hash__  # type: ignore[assignment]
    __array_priority__: float = 100.0  # of an array and a tensor the tensor's operator is called
    _place: Any
    stop_gradient: bool = True
    persistable: bool = False

    def __init__(self, data: Any = None, dtype: Any = None, place: Any = None) -> None:
        given = made([] if data is None else data, dtype, place)
        self._own(given._storage, given._layout, given._dtype)
        self._place = given._place

    # -- where and how -------------------------------------------------------

    @classmethod
    def _at(cls, host: Any, place: Any) -> Tensor:
        """Return a tensor on a place that owns a NumPy array."""
        self: Tensor = object.__new__(cls)
        self._hold(host)
        self._place = place
        if not on_cpu(place):
            array, stream = upload(host, place._index)
            self._own(Storage(None, array, stream), self._layout, self._dtype)
        return self

    @classmethod
    def _of(cls, host: Any) -> Any:
        of(host.dtype)
        return cls._at(np.array(host, order="C"), computing_place())

    @property
    def _class(self) -> Any:
        return Tensor

    def _seen(self, layout: Any) -> Any:
        view = super()._seen(layout)
        view._place = self._place
        return view

    def _make(self, function: Any, shape: Any, kind: Any, *inputs: Any) -> None:
        self._place = _place_for(inputs)
        if on_cpu(self._place):
            host = np.empty(tuple(shape), kind)
            function(*_on_host(inputs), out=host)
            self._hold(host)
        else:
            super()._make(function, shape, kind, *inputs)

    def _make_at(self, place: Any, function: Any, shape: Any, kind: Any, *inputs: Any) -> None:
        """Initialize the tensor as the result of a function on a place that has streams."""
        self._place = place
        super()._make(function, shape, kind, *inputs)

    def _enqueue(self, function: Any, inputs: tuple[Any, ...]) -> None:
        if on_cpu(self._place):
            storage = self._storage
            function(*_on_host(inputs), out=self._layout.view(storage.host.reshape(-1), 0))
            return
        here = [_moved(v, self._place) if isinstance(v, Tensor) else v for v in inputs]
        super()._enqueue(function, tuple(here))

    def _ordinal(self) -> int:
        return int(self._place._index)

    # -- what it is ------------------------------------------------------------

    @property
    def place(self) -> Any:
        """Where the contents are."""
        return self._place

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return of(self._dtype)

    @property
    def shape(self) -> Size:
        """Lengths of the dimensions."""
        return Size(self._layout.shape)

    @property
    def name(self) -> str:
        """A name, chosen at the first use."""
        found: str = self.__dict__.setdefault("_name", "")
        if not found:
            found = self.__dict__["_name"] = f"generated_tensor_{next(_names)}"
        return found

    @name.setter
    def name(self, value: str) -> None:
        self.__dict__["_name"] = value

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("paddle.Tensor", name)

    # -- contents: these wait --------------------------------------------------

    def numpy(self) -> Any:
        """`paddle.Tensor.numpy` of 3.3; a copy. Raises what the stream's work raised."""
        return self.asnumpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def item(self, *args: int) -> Any:
        """`paddle.Tensor.item` of 3.3: a Python scalar."""
        if not args and self.size != 1:
            raise ValueError(
                "(InvalidArgument) only one element tensors can be converted to Python scalars. "
                f"[Hint: Expected numel == 1, but received numel:{self.size} != 1:1.]"
            )
        try:
            return self.asnumpy().item(*args)
        except IndexError:
            raise ValueError(
                f"(InvalidArgument) index {args} is out of bounds for size {self.size}. "
                "[Hint: Expected offset < numel.]"
            ) from None

    def tolist(self) -> Any:
        """`paddle.Tensor.tolist` of 3.3."""
        return self.asnumpy().tolist()

    def _one(self, kind: str) -> Any:
        assert self.size == 1, f"only one element variable can be converted to {kind}."
        return self.item()

    def __bool__(self) -> bool:
        assert self.size == 1, (
            "When Variable is used as the condition of if/while , Variable can only contain one element."
        )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._one("int"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __index__(self) -> int:
        return int(self._one("python index"))

    def __len__(self) -> int:
        assert self.ndim > 0, "len() of a 0-D tensor is wrong"
        return int(self._layout.shape[0])

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __repr__(self) -> str:
        return text(
            self.asnumpy(),
            f"Tensor(shape={list(self.shape)}, dtype={self.dtype._name}, place={self._place}, "
            f"stop_gradient={self.stop_gradient},",
        )

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __reduce__(self) -> Any:
        return Tensor, (self.asnumpy(), self.dtype._name)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.clone()

    __copy__ = None

    # -- copies ---------------------------------------------------------------

    def astype(self, dtype: Any) -> Tensor:
        """`paddle.Tensor.astype` of 3.3: the tensor itself if it has the type already."""
        wanted = to_numpy(dtype)
        if wanted == self._dtype:
            return self
        return Tensor._result(copy_into, self.shape, wanted, self)

    cast = astype

    def clone(self) -> Tensor:
        """`paddle.Tensor.clone` of 3.3."""
        return Tensor._result(copy_into, self.shape, self._dtype, self)

    def detach(self) -> Tensor:
        """`paddle.Tensor.detach` of 3.3: the same memory."""
        return self._seen(self._layout)  # type: ignore[no-any-return]

    def cpu(self) -> Tensor:
        """`paddle.Tensor.cpu` of 3.3: waits for the contents."""
        return _moved(self, CPUPlace())

    def cuda(self, device_id: int | None = None, blocking: bool = True) -> Tensor:
        """`paddle.Tensor.cuda` of 3.3; the contents are there when the call returns."""
        where = _current.current_device() if device_id is None else device_id
        return _moved(self, convert_to_place(f"gpu:{where}"))

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """`paddle.Tensor.to` of 3.3: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(other)``."""
        result = self
        for value in (*args[:2], kwargs.get("device"), kwargs.get("dtype"), kwargs.get("other")):
            if isinstance(value, Tensor):
                result = _moved(result.astype(value.dtype), value._place)
            elif isinstance(value, dtype) or (isinstance(value, str) and _is_type(value)):
                result = result.astype(value)
            elif isinstance(value, (str, Place)):
                result = _moved(result, device_to_place(value))
            elif value is not None and not isinstance(value, bool):
                raise ValueError(f"device value error: {value!r} is no device, dtype or Tensor")
        return result

    def set_value(self, value: Any) -> None:
        """`paddle.Tensor.set_value` of 3.3: change the contents in place."""
        assert isinstance(value, (np.ndarray, Tensor)), (
            "Variable set_value function, arguments type only support Variable, numpy, Tensor, dict, string."
        )
        assert list(self.shape) == list(value.shape), (
            f"Variable Shape not match, Variable [ {self.name} ] need tensor with shape "
            f"{self.shape} but load set tensor with shape {tuple(value.shape)}"
        )
        self._set(..., value)

    # -- parts -----------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        _check_index(index)
        try:
            return self._get(index)
        except IndexError as exc:
            raise IndexError(f"(OutOfRange) {exc}") from None

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_index(index)
        if not isinstance(value, (Tensor, np.ndarray, np.generic, int, float, complex)):
            raise ValueError(
                "(InvalidArgument) Value type error. The assign value allows Tensor, "
                f"numpy.ndarray, integer, float, complex or bool, but received {value!r}."
            )
        try:
            self._set(index, value)
        except IndexError as exc:
            raise IndexError(f"(OutOfRange) {exc}") from None


def made(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """Return a tensor of Python's numbers, a NumPy array or a tensor: `paddle.to_tensor`."""
    wanted = None if dtype is None else to_numpy(dtype)
    where = computing_place() if place is None else device_to_place(place)
    if isinstance(data, Tensor):
        new = _moved(data.clone(), where) if place is not None else data.clone()
        return _marked(new.astype(wanted) if wanted is not None else new, stop_gradient)
    if not isinstance(data, (bool, int, float, complex, list, tuple, np.ndarray, np.generic)):
        raise TypeError(
            f"\n\tFailed to convert input data to a regular ndarray :\n\t - Can't constructs a "
            f"'paddle.Tensor' with data type {type(data)}, data type must be "
            "scalar|list|tuple|np.ndarray|paddle.Tensor"
        )
    host = np.asarray(_plain(data))
    if wanted is None and not isinstance(data, (np.ndarray, np.generic)):
        # Python's own floats and complex numbers follow the default type.
        if host.dtype.kind == "f":
            wanted = np.dtype(get_default_dtype())
        elif host.dtype.kind == "c":
            wanted = np.dtype(np.complex64 if get_default_dtype() == "float32" else np.complex128)
    of(host.dtype if wanted is None else wanted)
    return _marked(Tensor._at(np.array(host, dtype=wanted, order="C"), where), stop_gradient)


def _marked(x: Tensor, stop_gradient: bool) -> Tensor:
    x.stop_gradient = stop_gradient
    return x


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.asnumpy()
    return type(data)(map(_plain, data)) if type(data) in (list, tuple) else data


def computing_place() -> Any:
    """Return the place where new tensors are: the expected one."""
    return expected_place()


def on_cpu(place: Any) -> bool:
    """Return True for places in the host's memory, whose tensors the caller computes."""
    return place._kind not in ("gpu", "custom")


def _place_for(inputs: tuple[Any, ...]) -> Any:
    """Return where an operation happens: on the first device that an input is on."""
    places = [x._place for x in inputs if isinstance(x, Tensor)]
    for place in places:
        if not on_cpu(place):
            return place
    return places[0] if places else computing_place()


def _on_host(inputs: tuple[Any, ...]) -> list[Any]:
    return [x.asnumpy() if isinstance(x, Tensor) else x for x in inputs]


def _moved(x: Tensor, place: Any) -> Tensor:
    """Return a tensor on a place: itself if it is there."""
    if x._place == place or (on_cpu(x._place) and on_cpu(place)):
        return x
    return Tensor._at(x.asnumpy(), place)


def _is_type(name: str) -> bool:
    try:
        to_numpy(name)
    except TypeError:
        return False
    return True


def _check_index(index: Any) -> None:
    for part in index if isinstance(index, tuple) else (index,):
        whole = isinstance(part, (int, slice, list, tuple, np.integer, np.ndarray, Tensor))
        if not whole and part is not None and part is not Ellipsis:
            raise ValueError(
                "(InvalidArgument) Currently, Tensor.__indices__() only allows indexing by "
                "Boolean, Integers, Slices, Ellipsis, None, Tuples of these types and List / "
                f"Tensor of Bool and Integers, but received {part!r}."
            )
