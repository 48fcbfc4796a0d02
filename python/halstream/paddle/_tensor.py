"""`paddle.Tensor` of 3.3, the part that stream programs use: NumPy on the current stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import _current
from .._dialects import _operators
from .._dialects._compute import upload
from .._dialects._not_built import attribute_error
from .._dialects._operators import Operation
from .._dialects._tensor import SCALARS, BaseTensor, binary, change, copy_into, fill, product, unary
from ._dtype import dtype, get_default_dtype, of, to_numpy
from ._names import convert_to_place, device_to_place, expected_place
from ._place import Place
from ._places import CPUPlace
from ._printing import text


def _named(operation: Operation, enqueue: Callable[..., Any] = binary) -> Callable[..., Any]:
    """Return a method on two tensors."""
    title = operation.paddle + ("_" if enqueue is change else "")

    def operate(self: Tensor, y: Any, name: str | None = None) -> Any:
        """Enqueue the operation of this name on two tensors."""
        check_tensor(title, "y", 1, y)
        _check_types(self, y)
        return enqueue(title, operation, self, y)

    return operate


class Tensor(BaseTensor):
    """`paddle.Tensor` of 3.3: the operations that stream programs use.

    Operations on a tensor of a device are enqueued on that device's current stream and
    return at once; ``print``, `numpy` and `item` wait for the stream that made the
    contents. A tensor on a CPUPlace is computed by the caller. Differences: no gradients
    (`stop_gradient` is kept and means nothing), no bfloat16, and `numpy` copies.
    """

    __array_priority__: float = 100.0  # of an array and a tensor the tensor's operator is called
    _place: Any
    stop_gradient: bool = True

    def __init__(self, data: Any = None, dtype: Any = None, place: Any = None) -> None:
        given = made([] if data is None else data, dtype, place)
        self._own(given._storage, given._layout, given._dtype)
        self._place = given._place

    # -- where it is -----------------------------------------------------------

    @classmethod
    def _at(cls, host: Any, place: Any) -> Tensor:
        """Return a tensor on a place that owns a NumPy array."""
        self: Tensor = object.__new__(cls)
        self._place = place
        if on_cpu(place):
            self._hold(host)
        else:
            self._adopt(*upload(host, place._index))
        return self

    @classmethod
    def _of(cls, host: Any) -> Any:
        of(host.dtype)
        return cls._at(np.array(host, order="C"), expected_place())

    def _seen(self, layout: Any) -> Any:
        view = super()._seen(layout)
        view._place = self._place
        return view

    def _make(self, function: Any, shape: Any, kind: Any, *inputs: Any) -> None:
        self._make_at(_place_for(inputs), function, shape, kind, *inputs)

    def _make_at(self, place: Any, function: Any, shape: Any, kind: Any, *inputs: Any) -> None:
        """Initialize the tensor as the result of a function on a place."""
        self._place = place
        if on_cpu(place):
            self._hold(np.empty(tuple(shape), kind))
            self._enqueue(function, *inputs)
        else:
            super()._make(function, shape, kind, *inputs)

    def _enqueue(self, function: Any, *inputs: Any) -> None:
        if on_cpu(self._place):
            given = [x.asnumpy() if isinstance(x, Tensor) else x for x in inputs]
            function(*given, out=self._layout.view(self._storage.host.reshape(-1), 0))
        else:
            super()._enqueue(function, *(_moved(v, self._place) if isinstance(v, Tensor) else v for v in inputs))

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
    def shape(self) -> list[int]:
        """Lengths of the dimensions."""
        return list(self._layout.shape)

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("paddle.Tensor", name)

    # -- operations --------------------------------------------------------------

    def _operate(self, operation: Operation, a: Any, b: Any) -> Any:
        if operation is _operators.MATMUL:
            return a.matmul(b) if a is self else NotImplemented
        name = f"__{'' if a is self else 'r'}{operation.symbol}__"
        _check_operand(name, self, b if a is self else a)
        return binary(name, operation, a, b)

    def _compare(self, operation: Operation, other: Any) -> Any:
        name = f"__{operation.symbol}__"
        if operation in (_operators.EQUAL, _operators.NOT_EQUAL) and not isinstance(other, _OPERANDS):
            return operation is _operators.NOT_EQUAL
        _check_operand(name, self, other)
        return binary(name, operation, self, other)

    def _apply(self, operation: Operation) -> Any:
        return unary(operation.paddle, operation, self)

    add: Callable[..., Any] = _named(_operators.ADD)
    subtract: Callable[..., Any] = _named(_operators.SUBTRACT)
    multiply: Callable[..., Any] = _named(_operators.MULTIPLY)
    divide: Callable[..., Any] = _named(_operators.DIVIDE)
    add_: Callable[..., Any] = _named(_operators.ADD, change)
    subtract_: Callable[..., Any] = _named(_operators.SUBTRACT, change)
    multiply_: Callable[..., Any] = _named(_operators.MULTIPLY, change)
    divide_: Callable[..., Any] = _named(_operators.DIVIDE, change)

    def matmul(self, y: Any, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None) -> Any:
        """`paddle.matmul` of 3.3 without transpositions of more than two dimensions."""
        check_tensor("matmul", "y", 1, y)
        a, b = self.T if transpose_x else self, y.T if transpose_y else y
        try:
            return product(a, b)
        except (RuntimeError, ValueError):
            raise ValueError(
                "(InvalidArgument) Input(Y) has error dim. Y'dims[0] must be equal to the last "
                f"dimension of X, but the shapes are {list(a.shape)} and {list(b.shape)}."
            ) from None

    def fill_(self, value: Any) -> Any:
        """`paddle.Tensor.fill_` of 3.3."""
        self._enqueue(fill, value)
        return self

    def zero_(self) -> Any:
        """`paddle.Tensor.zero_` of 3.3."""
        return self.fill_(0)

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

    # -- contents: these wait --------------------------------------------------

    def numpy(self) -> Any:
        """`paddle.Tensor.numpy` of 3.3; a copy. Raises what the stream's work raised."""
        return self.asnumpy()

    def item(self, *args: int) -> Any:
        """`paddle.Tensor.item` of 3.3: a Python scalar."""
        if not args and self.size != 1:
            raise ValueError(
                "(InvalidArgument) only one element tensors can be converted to Python scalars. "
                f"[Hint: Expected numel == 1, but received numel:{self.size} != 1:1.]"
            )
        return self.asnumpy().item(*args)

    def _one(self, kind: str) -> Any:
        assert self.size == 1, f"only one element variable can be converted to {kind}."
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __len__(self) -> int:
        assert self.ndim > 0, "len() of a 0-D tensor is wrong"
        return self.shape[0]

    def __repr__(self) -> str:
        return text(
            self.asnumpy(),
            f"Tensor(shape={list(self.shape)}, dtype={self.dtype._name}, place={self._place}, "
            f"stop_gradient={self.stop_gradient},",
        )

    # -- parts -----------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._get(index)
        except IndexError as exc:
            raise IndexError(f"(OutOfRange) {exc}") from None

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, (Tensor, np.ndarray, np.generic, int, float, complex)):
            raise ValueError(
                "(InvalidArgument) Value type error. The assign value allows Tensor, "
                f"numpy.ndarray, integer, float, complex or bool, but received {value!r}."
            )
        try:
            self._set(index, value)
        except IndexError as exc:
            raise IndexError(f"(OutOfRange) {exc}") from None


_OPERANDS = (*SCALARS, np.ndarray, Tensor)


def made(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """Return a tensor of Python's numbers, a NumPy array or a tensor: `paddle.to_tensor`."""
    wanted = None if dtype is None else to_numpy(dtype)
    where = expected_place() if place is None else device_to_place(place)
    if isinstance(data, Tensor):
        new = _moved(data.clone(), where) if place is not None else data.clone()
        new = new if wanted is None else new.astype(wanted)
    elif isinstance(data, (bool, int, float, complex, list, tuple, np.ndarray, np.generic)):
        host = np.asarray(data)
        if wanted is None and not isinstance(data, (np.ndarray, np.generic)):
            # Python's own floats and complex numbers follow the default type.
            if host.dtype.kind == "f":
                wanted = np.dtype(get_default_dtype())
            elif host.dtype.kind == "c":
                wanted = np.dtype(np.complex64 if get_default_dtype() == "float32" else np.complex128)
        of(host.dtype if wanted is None else wanted)
        new = Tensor._at(np.array(host, dtype=wanted, order="C"), where)
    else:
        raise TypeError(
            f"\n\tFailed to convert input data to a regular ndarray :\n\t - Can't constructs a "
            f"'paddle.Tensor' with data type {type(data)}, data type must be "
            "scalar|list|tuple|np.ndarray|paddle.Tensor"
        )
    new.stop_gradient = stop_gradient
    return new


def on_cpu(place: Any) -> bool:
    """Return True for places in the host's memory, whose tensors the caller computes."""
    return place._kind not in ("gpu", "custom")


def check_tensor(name: str, argument: str, position: int, value: Any) -> None:
    """Raise paddle's error for an operand that is no tensor."""
    if not isinstance(value, Tensor):
        raise ValueError(
            f"(InvalidArgument) {name}(): argument '{argument}' (position {position}) must be "
            f"Tensor, but got {type(value).__name__}"
        )


def _check_operand(name: str, x: Tensor, other: Any) -> None:
    if not isinstance(other, _OPERANDS):
        raise TypeError(
            f"(InvalidType) {name}(): argument (position 1) must be int, float, bool or "
            f"Tensor, but got {type(other).__name__}"
        )
    _check_types(x, other)


def _check_types(a: Tensor, b: Any) -> None:
    """Refuse two tensors whose types paddle does not promote.

    Only floats, and complex and real numbers, are; a tensor without dimensions counts as a number.
    """
    if not isinstance(b, Tensor) or a._dtype == b._dtype or not (a.ndim and b.ndim):
        return
    kinds = {a._dtype.kind, b._dtype.kind}
    if kinds != {"f"} and "c" not in kinds:
        raise TypeError(
            "(InvalidType) Type promotion only support calculations between floating-point numbers "
            "and between complex and real numbers. But got different data type "
            f"x: {a._dtype.name}, y: {b._dtype.name}."
        )


def _place_for(inputs: tuple[Any, ...]) -> Any:
    """Return where an operation happens: on the first device that an input is on."""
    places = [x._place for x in inputs if isinstance(x, Tensor)]
    for place in places:
        if not on_cpu(place):
            return place
    return places[0] if places else expected_place()


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
