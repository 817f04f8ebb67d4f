"""What a graph of ocl is changed to before its operators are lowered; the pass's identity is in the
keys of Inductor's caches."""

from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from torch_ocl.inductor.target import identity

aten = torch.ops.aten


class GraphPass(CustomGraphModulePass):
    def __call__(self, gm: torch.fx.GraphModule) -> None:
        for node in list(gm.graph.nodes):
            if node.op == "call_function" and _is_fill_by_mask(node):
                _replace_by_where(gm.graph, node)

    def uuid(self) -> str:
        return identity()


def _is_fill_by_mask(node: torch.fx.Node) -> bool:
    """``x[mask] = number`` on a copy. Inductor makes it a change in place, and runs it before
    earlier changes of the same copy (torch 2.11 to 2.14, every device)."""
    if node.target not in (aten.index_put.default, aten._unsafe_index_put.default):
        return False
    self, indices, values, *rest = node.args
    fakes = [n.meta.get("val") if isinstance(n, torch.fx.Node) else None for n in (self, values)]
    if any(rest) or len(indices) != 1 or not all(isinstance(f, torch.Tensor) for f in fakes):
        return False
    mask = indices[0].meta.get("val") if isinstance(indices[0], torch.fx.Node) else None
    is_mask = isinstance(mask, torch.Tensor) and mask.dtype == torch.bool
    return is_mask and fakes[0].device.type == "ocl" and fakes[1].dim() == 0


def _replace_by_where(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    self, (mask,), value = node.args[:3]

    def add(target: Any, *args: Any) -> torch.fx.Node:
        new = graph.call_function(target, args)
        fakes = torch.fx.map_arg(args, lambda n: n.meta["val"])
        new.meta.update(node.meta, val=target(*fakes))
        return new

    with graph.inserting_before(node):
        for _ in range(self.meta["val"].dim() - mask.meta["val"].dim()):
            mask = add(aten.unsqueeze.default, mask, -1)
        if value.meta["val"].device.type != "ocl":
            value = add(torch.ops.prims.device_put.default, value, self.meta["val"].device)
        if value.meta["val"].dtype != self.meta["val"].dtype:
            kind = self.meta["val"].dtype
            value = add(torch.ops.prims.convert_element_type.default, value, kind)
        node.replace_all_uses_with(add(aten.where.self, mask, value, self))
    graph.erase_node(node)
