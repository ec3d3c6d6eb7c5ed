"""Four numbers in one register.

LLVM cuts a loop of unknown length into pieces of 16 or 32 and does the rest one by one, which
is most of it where rows are short; straight-line code it leaves alone, as Numba sets it up. These
functions say what is meant. On a processor without such registers LLVM takes smaller ones.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 4
NUMBER, POSITION = ir.DoubleType(), ir.IntType(64)
VECTOR = ir.VectorType(NUMBER, LANES)
ZERO = ir.Constant(VECTOR, [0.0] * LANES)
FUSED = ("contract",)
"""A product and a sum may be rounded once, as everywhere in the kernels."""


class Four(types.Type):  # type: ignore[misc]
    """Numba's type of four numbers."""


FOUR = Four("Four")
written_out: Any = intrinsic
"""A function that gives its type and its LLVM code; its caller leaves out the first argument."""


@register_model(Four)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, four: Any) -> None:
        super().__init__(manager, four, VECTOR)


def _address(context: Any, builder: Any, array: Any, values: Any) -> Any:
    """Where in memory flat[i] is, read as four numbers."""
    data = context.make_array(array)(context, builder, value=values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), VECTOR.as_pointer())


def _everywhere(builder: Any, number: Any) -> Any:
    """The number in all four places."""
    one = builder.insert_element(ZERO, number, ir.Constant(POSITION, 0))
    same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, one, same)


@written_out
def load(_: Any, flat: Any, i: Any) -> Any:
    """flat[i : i + 4]."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], values), align=8)

    return FOUR(flat, i), made


@written_out
def store(_: Any, flat: Any, i: Any, x: Any) -> Any:
    """flat[i : i + 4] = x."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], values)
        builder.store(values[2], address, align=8)
        return context.get_dummy_value()

    return types.void(flat, i, x), made


@written_out
def zeros(_: Any) -> Any:
    """Four zeros."""
    return FOUR(), lambda context, builder, signature, values: ZERO


@written_out
def plus(_: Any, x: Any, y: Any, z: Any) -> Any:
    """x + y·z."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, y, z = values
        return builder.fadd(x, builder.fmul(y, z, flags=FUSED), flags=FUSED)

    return FOUR(x, y, z), made


@written_out
def minus(_: Any, x: Any, factor: Any, y: Any) -> Any:
    """x − factor·y for one factor."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, factor, y = values
        product = builder.fmul(_everywhere(builder, factor), y, flags=FUSED)
        return builder.fsub(x, product, flags=FUSED)

    return FOUR(x, types.float64, y), made


@written_out
def total(_: Any, x: Any) -> Any:
    """The sum of the four."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c, d = (
            builder.extract_element(values[0], ir.Constant(POSITION, k)) for k in range(LANES)
        )
        return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))

    return types.float64(x), made
