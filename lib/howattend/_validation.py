"""Checks of arguments, shared by the library: every message names the argument, what is valid, and what to do."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

FLOATS = (torch.float32, torch.float64)
INTEGERS = (
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)

Array = Tensor | np.ndarray


def to_tensor(value: Any, name: str) -> Tensor:
    """A tensor that shares the memory of a torch tensor or numpy array wherever torch can, detached from any graph.

    Arrays that torch cannot view (read-only, of another byte order, or with negative strides) are copied.

    Raises:
        TypeError: for anything else, such as a list, a masked array or a sparse tensor.
    """
    if isinstance(value, Tensor):
        if value.layout != torch.strided:
            raise TypeError(f"{name} must be a dense tensor, got layout {value.layout}: pass {name}.to_dense()")
        return value.detach()
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a numpy masked array: pass its .data here, and a bool mask as the mask")
    if isinstance(value, PackedSequence):
        raise TypeError(f"{name} must be padded, got a PackedSequence: use torch.nn.utils.rnn.pad_packed_sequence")
    if isinstance(value, tuple):
        raise TypeError(f"{name} must be one array, got a tuple of {len(value)}: of an LSTM's (h, c) pass h")
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"{name} must be a torch tensor or a numpy array, got {type(value).__name__}: "
            f"convert it first, with torch.as_tensor({name}) or numpy.asarray({name})"
        )
    itemsize = value.dtype.itemsize
    viewable = (
        value.flags.writeable and value.dtype.isnative and all(s >= 0 and s % itemsize == 0 for s in value.strides)
    )
    if not viewable:
        value = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")
    try:
        return torch.from_numpy(value)
    except TypeError:
        raise TypeError(
            f"{name} has numpy dtype {value.dtype}, which torch does not know: convert it with {name}.astype(...)"
        ) from None


def like(result: Tensor, argument: Array) -> Array:
    """The result in the kind of the argument: a numpy array for a numpy array, otherwise the tensor itself."""
    return result.numpy() if isinstance(argument, np.ndarray) else result


def require_floats(tensor: Tensor, name: str) -> Tensor:
    """The tensor, if it is float32 or float64; TypeError otherwise."""
    if tensor.dtype not in FLOATS:
        raise TypeError(
            f"{name} must be float32 or float64, got {_dtype(tensor)}: convert with .float() (torch) or "
            ".astype('float32') (numpy); half precision is too coarse for means and their differences"
        )
    return tensor


def require_integers(tensor: Tensor, name: str) -> Tensor:
    """The tensor as int64, if it is of any integer type; TypeError otherwise."""
    if tensor.dtype not in INTEGERS:
        raise TypeError(
            f"{name} must be integers (any width), got {_dtype(tensor)}: pass word ids, "
            "converted with .long() (torch) or .astype('int64') (numpy)"
        )
    return tensor.to(torch.int64)


def require_mask(tensor: Tensor, name: str) -> Tensor:
    """The tensor, if it is bool; TypeError otherwise."""
    if tensor.dtype != torch.bool:
        raise TypeError(
            f"{name} must be bool, True on words, got {_dtype(tensor)}: convert with {name} != 0, "
            "after checking that 1 means a word and 0 padding"
        )
    return tensor


def require_shape(tensor: Tensor, name: str, axes: str, sizes: dict[str, int]) -> None:
    """Check a shape against named axes such as "M T n", and note the size of each axis seen for the first time.

    Raises:
        ValueError: for another number of axes, a size that differs from the one noted, or an empty axis.
    """
    names = axes.split()
    known = ", ".join(f"{axis} = {sizes[axis]}" for axis in names if axis in sizes)
    expected = f"[{', '.join(names)}]" + (f" with {known}" if known else "")
    shape = list(tensor.shape)
    if len(shape) != len(names) or any(sizes.get(axis, size) != size for axis, size in zip(names, shape, strict=True)):
        raise ValueError(f"{name} must have shape {expected}, got {shape}: pass arrays of the same samples and steps")
    for axis, size in zip(names, shape, strict=True):
        if size == 0:
            raise ValueError(
                f"{name} must have shape {expected}, got {shape}: {axis} must be at least 1, pass no empty batch"
            )
        sizes[axis] = size


def require_count(value: Any, name: str) -> int:
    """The value as an int, if it is an integer of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer of at least 1, got {value!r} ({type(value).__name__}): pass an int")
    if number < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {number}: pass how many there are")
    return number


def require_known(value: str, name: str, values: Iterable[str]) -> None:
    """ValueError unless the value is one of these."""
    if value not in (values := list(values)):
        raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")


def require_device(device: str) -> None:
    """ValueError unless torch can compute on this device here."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f'device {device!r} cannot be used here ({reason}); "cpu" always can') from None


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """What to say of a name that there is not: those most like it, where some are, and all there are."""
    known = list(known)
    return f"unknown {kind} {name!r}; {meant(name, known)}the {kind}s are {', '.join(known)}"


def meant(name: str, known: Iterable[str]) -> str:
    """A question for a message: which of the known names, if any, are like this one."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}? " if near else ""


def shortened(value: object, size: int = 60) -> str:
    """A value as a message can hold it: the beginning of a long one."""
    text = repr(value)
    return text if len(text) <= size else cut(text, size - 1) + text[-1]


def cut(text: str, size: int = 60) -> str:
    """The text, or the beginning of a long one."""
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
