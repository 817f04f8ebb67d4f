"""What a graph of ocl is changed to before its operators are lowered; the pass's identity is in the
keys of Inductor's caches."""

import functools
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from torch_ocl.inductor.target import identity

aten = torch.ops.aten


class GraphPass(CustomGraphModulePass):
    def __call__(self, gm: torch.fx.GraphModule) -> None:
        for node in list(gm.graph.nodes):
            if node.op != "call_function":
                continue
            if _is_fill_by_mask(node):
                _replace_by_where(gm.graph, node)
            elif (product := _product_of(node)) is not None:
                _end_product(gm.graph, product, node)
            elif (sum_ := _sum_of(node)) is not None:
                _add_in_product(gm.graph, node, *sum_)

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


def _call(
    graph: torch.fx.Graph, like: torch.fx.Node, target: Any, *args: Any, **kwargs: Any
) -> torch.fx.Node:
    """A node with what is known of another, and its own result."""
    new = graph.call_function(target, args, kwargs)
    of = lambda given: torch.fx.map_arg(given, lambda n: n.meta["val"])  # noqa: E731
    new.meta.update(like.meta, val=target(*of(args), **of(kwargs)))
    return new


def _replace_by_where(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    self, (mask,), value = node.args[:3]
    add = functools.partial(_call, graph, node)
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


_VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)
_PARTS = (*_VIEWS, aten.select.int, aten.slice.Tensor, aten.unsqueeze.default)
"""Views that name memory which is there already."""
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _ends() -> tuple[torch.dtype, ...]:
    """Types whose products are ended by their kernel: 16-bit ones are rounded once then, which is
    not what eager mode gives."""
    return _FLOATS[:1] if config.emulate_precision_casts else _FLOATS


def _product_of(node: torch.fx.Node) -> torch.fx.Node | None:
    """The product with bias that an activation alone reads, through views, or None: the product's
    kernel applies relu, and gelu that is not approximated, by itself."""
    is_gelu = node.target is aten.gelu.default
    if node.target is not aten.relu.default and not is_gelu:
        return None
    if is_gelu and node.kwargs.get("approximate", "none") != "none":
        return None
    product = node.args[0]
    while product.target in _VIEWS and len(product.users) == 1:
        product = product.args[0]
    if product.target is not aten.addmm.default or len(product.users) != 1:
        return None
    fake = product.meta.get("val")
    is_ours = isinstance(fake, torch.Tensor) and fake.device.type == "ocl"
    return product if is_ours and fake.dtype in _ends() else None


def _end_product(graph: torch.fx.Graph, product: torch.fx.Node, node: torch.fx.Node) -> None:
    options = {**product.kwargs, "use_gelu": node.target is aten.gelu.default}
    with graph.inserting_before(product):
        whole = _call(graph, product, aten._addmm_activation.default, *product.args, **options)
    node.replace_all_uses_with(node.args[0])
    graph.erase_node(node)
    product.replace_all_uses_with(whole)
    graph.erase_node(product)


def _base(node: Any) -> Any:
    """What a node is a view of, where nothing else reads the views."""
    while node.target in _VIEWS and len(node.users) == 1:
        node = node.args[0]
    return node


def _is_in_memory_before(node: torch.fx.Node, product: torch.fx.Node) -> bool:
    """Whether a value has to be in memory when a product begins: an input, a call's result, or what
    the product is computed from."""
    while node.target in _PARTS:
        node = node.args[0]
    if node.op == "placeholder" or node.target in (
        *_PRODUCTS,
        aten.embedding_dense_backward.default,
    ):
        return True
    seen, waiting = set(), list(product.all_input_nodes)
    while waiting:
        before = waiting.pop()
        if before is node:
            return True
        if before not in seen:
            seen.add(before)
            waiting += before.all_input_nodes
    return False


_PRODUCTS = (aten.mm.default, aten.addmm.default, aten._addmm_activation.default)


def _sum_of(node: torch.fx.Node) -> tuple[torch.fx.Node, torch.fx.Node] | None:
    """A product and what alone is added to it, or None: the product's kernel adds by itself."""
    if node.target is not aten.add.Tensor or node.kwargs or len(node.args) != 2:
        return None
    for given, other in (node.args, node.args[::-1]):
        if not all(isinstance(n, torch.fx.Node) for n in (given, other)):
            continue
        product = _base(given)
        if product.target is not aten.mm.default or len(product.users) != 1 or given is other:
            continue
        result, added, total = product.meta["val"], other.meta["val"], node.meta["val"]
        if not isinstance(added, torch.Tensor):  # a size
            continue
        is_row = added.dim() == 1 and added.shape == result.shape[1:] == total.shape[-1:]
        fits = added.dtype == result.dtype and (is_row or added.shape == total.shape)
        fits = fits and given.meta["val"].shape == total.shape  # else the product is repeated
        is_ours = result.device.type == "ocl" == added.device.type and result.dtype in _ends()
        if fits and is_ours and added.is_contiguous() and _is_in_memory_before(other, product):
            return product, other
    return None


def _view(graph: torch.fx.Graph, node: torch.fx.Node, shape: list[Any]) -> torch.fx.Node:
    return _call(graph, node, aten.view.default, node, shape)


def _add_in_product(
    graph: torch.fx.Graph, node: torch.fx.Node, product: torch.fx.Node, other: torch.fx.Node
) -> None:
    shape = list(product.meta["val"].shape)
    add = functools.partial(_call, graph, product)
    with graph.inserting_before(node):
        added = other.meta["val"]
        is_fit = added.dim() == 1 or list(added.shape) == shape
        rows = other if is_fit else _view(graph, other, shape)
        whole = add(aten.addmm.default, rows, *product.args)
        if list(node.meta["val"].shape) != shape:
            whole = _view(graph, whole, list(node.meta["val"].shape))
    node.replace_all_uses_with(whole)
    graph.erase_node(node)
