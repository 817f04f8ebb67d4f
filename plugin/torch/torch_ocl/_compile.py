"""torch.compile's default backend: graphs with tensors on ocl go to ``torch_ocl.inductor``, others
where they would go without ocl. ``OCLTENSOR_COMPILE=0`` leaves graphs of ocl uncompiled."""

import functools
import sys
import warnings
from typing import TYPE_CHECKING, Any

import torch

from torch_ocl import _C

if TYPE_CHECKING:
    from torch_ocl.inductor.report import CompiledGraph

SETTING = "OCLTENSOR_COMPILE"
OFF = f"ocl: {SETTING}=0: torch.compile runs graphs of ocl operator by operator"


def install() -> None:
    """Takes the calls by which Dynamo gives graphs to Inductor."""
    try:
        wrapper = torch._TorchCompileInductorWrapper
        aot = torch._TorchCompileAOTInductorWrapper
    except AttributeError:  # private names, which a torch version may lack
        return
    elsewhere = wrapper.__call__

    @functools.wraps(elsewhere)
    def compile_graph(self: Any, model_: Any, inputs_: Any, **options: Any) -> Any:
        # Results of AOTInductor are files: those are made elsewhere.
        if isinstance(self, aot) or not _is_of_ocl(model_, inputs_):
            return elsewhere(self, model_, inputs_, **options)
        if _C.get_setting(SETTING) == "0":
            return _operator_by_operator(model_, inputs_)
        from torch_ocl import inductor

        settings = {**self.config, **(options.pop("config_patches", None) or {})}
        if hasattr(self, "name"):
            options["compile_region_name"] = self.name
        return inductor.compile_graph(model_, inputs_, settings, **options)

    wrapper.__call__ = compile_graph  # type: ignore[method-assign]


def _is_of_ocl(graph: Any, inputs: Any) -> bool:
    """Whether an input or a value of the graph is on ocl."""
    from torch.utils import _pytree as pytree

    parts = [part for part in graph.modules() if isinstance(part, torch.fx.GraphModule)]
    metas = [node.meta for part in parts for node in part.graph.nodes]
    values = [meta.get(key) for meta in metas for key in ("example_value", "val")]
    leaves = pytree.tree_leaves([list(inputs), values])
    return any(isinstance(v, torch.Tensor) and v.device.type == "ocl" for v in leaves)


@functools.cache
def _say_off() -> None:
    warnings.warn(OFF, stacklevel=3)


def _operator_by_operator(graph: Any, inputs: Any) -> Any:
    from torch._dynamo.backends.debugging import aot_eager

    _say_off()
    return aot_eager(graph, inputs)


def compile_report() -> "list[CompiledGraph]":
    """What ``torch.compile`` made of graphs of ocl in this process, first to last: for each its
    ``kernels`` by name, the ``calls`` of operators that could not become kernels, with the reason,
    in ``eager`` why none of it was compiled (else None), its ``plan`` (how many ``steps`` of each
    kind, and lines of ``python``; or why it has none), and ``seconds``.

    >>> for graph in torch.ocl.compile_report():
    ...     print(len(graph.kernels), "kernels,", graph.calls, graph.eager or "compiled")
    """
    if "torch_ocl.inductor" not in sys.modules:
        return []
    from torch_ocl.inductor.report import report

    return list(report.graphs)
