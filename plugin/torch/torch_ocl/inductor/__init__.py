"""torch.compile for ocl: Inductor, PyTorch's default compiler, with kernels in OpenCL C.

Imported when the first graph is compiled. A graph goes this way: Dynamo calls ``compile_graph``
(torch_ocl/_compile.py), AOTAutograd traces it with ``lowerings.decompositions``, and for each of
its passes ``compile_pass`` calls Inductor with ``settings.in_force``. There ``decide`` chooses
between kernels and calls of operators, ``scheduling`` and ``kernel`` write the kernels, ``wrapper``
the Python that calls them, which ``runtime`` serves.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor.compile_fx import compile_fx, compile_fx_inner

from torch_ocl.inductor import settings
from torch_ocl.inductor.lowerings import decompositions, whole_resizes
from torch_ocl.inductor.registration import register
from torch_ocl.inductor.report import report


def compile_graph(
    graph: Any, inputs: Sequence[Any], config_patches: dict[str, Any], **options: Any
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo's that has tensors on ocl."""
    register()
    with whole_resizes():
        return compile_fx(
            graph,
            inputs,
            inner_compile=compile_pass,
            config_patches=config_patches,
            decompositions=decompositions(),
            **options,
        )


def compile_pass(gm: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
    """Compiles a forward or a backward pass; what Inductor or the driver refuses is run operator
    by operator, with a warning that says why."""
    as_given = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    report.begin()
    try:
        with settings.in_force():
            compiled = compile_fx_inner(gm, inputs, **options)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        report.end(eager=reason)
        warnings.warn(
            f"ocl: torch.compile runs a graph operator by operator: {reason}", stacklevel=2
        )
        return _operator_by_operator(as_given)
    report.end()
    return compiled


def _operator_by_operator(graph: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    def run(inputs: list[Any]) -> Any:
        values = list(inputs)
        inputs.clear()  # the callee owns them
        return graph(*values)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
