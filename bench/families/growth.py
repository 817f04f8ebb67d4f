"""Time against size, from one element to 1 GB: no row may cost far more than its smaller neighbour
promises."""

from __future__ import annotations

from rows import Row, Scale

from .attention import attention
from .matmul import product
from .pointwise import add
from .reduce import total


def rows(scale: Scale) -> list[Row]:
    sizes = [4**p for p in range(15)]  # 4^14 floats are 1 GB
    result = [
        add(n, family="growth", name=f"growth pointwise {n}", group="growth pointwise", size=n)
        for n in sizes
    ]
    result += [
        total(n, family="growth", name=f"growth reduction {n}", group="growth reduction", size=n)
        for n in sizes
    ]
    edges = [2**p for p in range(scale.pick(12, 14))]
    result += [
        product(n, n, n, family="growth", name=f"growth matmul {n}", group="growth matmul", size=n)
        for n in edges
    ]
    for length in [2**p for p in range(scale.pick(13, 16))]:
        row = attention(1, 4, length, 64, backward=False, family="growth", size=length)[0]
        row.name, row.group = f"growth attention {length}", "growth attention"
        result.append(row)
    return result
