"""Several kernels in one launch, Inductor's combo kernels: small ones that do not depend on one
another, and those of optimizers, one for each parameter.

A member is a kernel with arguments of its own. Work-groups are dealt out to the members, one member
after another. Members with the same text share it; which of them a work-group belongs to says what
the text's parameters are.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.scheduler import ForeachKernelSchedulerNode
from torch._inductor.virtualized import V

from torch_ocl.inductor.kernel import OpenCLKernel
from torch_ocl.inductor.launch import argument_texts
from torch_ocl.inductor.preamble import preamble
from torch_ocl.inductor.types import tag

MOST = 16
"""Kernels of one launch, but for optimizers: a text that long is compiled by one process."""
_SMALL_GROUP = 64
_SIZES = {"char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "double": 8}
_SIZES |= {f"u{name}": _SIZES[name] for name in ("char", "short", "int", "long")}
_SIZES |= {"Moments_float": 12, "Moments_double": 24}


def can_be_member(tiling: dict[str, Any]) -> bool:
    """Whether a kernel with these axes can be one of several: its range does not vary."""
    fixed = all(isinstance(numel, sympy.Integer) for numel in tiling.values())
    return fixed and set(tiling) <= {"x", "y", "r0_"}


def _words(kernel: OpenCLKernel) -> list[int]:
    """Of 8 bytes, that each array in local memory takes."""
    return [-(-_SIZES[kind] * kernel.group() // 8) for kind, _ in kernel.locals]


def _tensors(kernel: OpenCLKernel) -> set[str]:
    definitions = kernel.args.python_argdefs()
    return {str(call) for call, a in zip(*definitions[1:3], strict=True) if hasattr(a, "buffer")}


def launches_of(kernels: Sequence[OpenCLKernel]) -> list[list[OpenCLKernel]]:
    """The kernels in lists, one for each launch."""
    waiting, lists = list(kernels), []
    while waiting:
        together, left, tensors = [waiting[0]], [], _tensors(waiting[0])
        for kernel in waiting[1:]:
            named = tensors | _tensors(kernel)
            if len(named) > kernel.target.tensors:
                left.append(kernel)
            else:
                together, tensors = [*together, kernel], named
        lists.append(together)
        waiting = left
    return lists


def group_of(kernels: Sequence[OpenCLKernel]) -> int:
    """Work-items of a group: what reductions want; others take any that is not small."""
    if kernels[0].style == "cpu":
        return 1
    wanted = [kernel.group() for kernel in kernels if kernel.features.is_reduction()]
    if not wanted:
        return kernels[0].group()
    least = 1 if len(wanted) == len(kernels) else min(_SMALL_GROUP, kernels[0].target.group)
    return max(*wanted, least)


@contextlib.contextmanager
def _branch(code: IndentedBuffer, place: int, end: int | None) -> Iterator[None]:
    """One of several, for groups before ``end`` that are in none before; None: for all others."""
    condition = "" if end is None else f"if (group < {end}) "
    code.writeline(f"{'else ' * (place > 0)}{condition}{{")
    with code.indent():
        yield
    code.writeline("}")


@dataclasses.dataclass
class _Text:
    """What some members share: all but what the names in it stand for."""

    text: str
    declared: list[str]
    first: OpenCLKernel
    members: list[tuple[tuple[int, int], list[str]]] = dataclasses.field(default_factory=list)
    """For each its groups along x and y, and the lines that say what the names are."""

    def write(self, code: IndentedBuffer, start: int) -> None:
        for line in (*self.declared, "int first, x_groups;"):
            code.writeline(line)
        for place, ((x, y), assigned) in enumerate(self.members):
            end = start + x * y
            with _branch(code, place, end if place + 1 < len(self.members) else None):
                for line in (*assigned, f"first = {start};", f"x_groups = {x};"):
                    code.writeline(line)
            start = end
        for line in self._local_arrays():
            code.writeline(line)
        has_y = any(tree.prefix == "y" for tree in self.first.grid_trees())
        code.writeline(f"const int x_group = (group - first){' % x_groups' * has_y};")
        if has_y:
            code.writeline("const int y_group = (group - first) / x_groups;")
        code.splice(self.text)

    def _local_arrays(self) -> list[str]:
        """In memory that all texts share: a group runs one of them."""
        lines, start = [], 0
        for (kind, name), words in zip(self.first.locals, _words(self.first), strict=True):
            lines.append(f"__local {kind} *const {name} = (__local {kind} *)(shared + {start});")
            start += words
        return lines


class ComboKernel:
    """Written and launched as one kernel."""

    def __init__(self, members: Sequence[OpenCLKernel]) -> None:
        self.members, self.group = list(members), group_of(members)
        self.parameters: dict[tuple[str, Any], str] = {}  # names by argument and type
        self.declared: list[str] = []
        self.call_texts: list[str] = []
        self.call_types: list[Any] = []
        self.reports_faults = any(member.reports_faults for member in members)
        for member in members:
            member.is_member = True
            if member.style == "gpu" and member.features.is_reduction():
                member.wished_group = self.group

    # ---- Parameters
    def _parameter(self, text: str, argument: Any, kind: Any, member: OpenCLKernel) -> str:
        """Its name; a tensor or a number that several members take is one parameter."""
        key = (text, getattr(argument, "dtype", None))
        if key not in self.parameters:
            name = self.parameters[key] = f"p{len(self.parameters)}"
            if hasattr(argument, "buffer"):
                element = f"STYPE({tag(argument.dtype)})"
                self.declared += [f"__global {element} *{name}_base", f"ulong {name}_offset"]
            else:
                self.declared.append(f"{member.number_type(argument)} {name}")
            self.call_texts.append(text)
            self.call_types.append(kind)
        return self.parameters[key]

    def _assignments(self, member: OpenCLKernel) -> tuple[list[str], list[str]]:
        """Declarations of what a member's text names, and what makes them the member's."""
        definitions, _, arguments, _ = member.args.python_argdefs()
        declared, assigned = [], []
        texts = zip(definitions, arguments, *argument_texts(member), strict=True)
        for definition, argument, text, kind in texts:
            parameter = self._parameter(text, argument, kind, member)
            if hasattr(argument, "buffer"):
                name = tag(argument.dtype)
                declared.append(f"__global STYPE({name}) *{definition.name};")
                value = f"AT({name}, {parameter}_base, {parameter}_offset)"
            else:
                declared.append(f"{member.number_type(argument)} {definition.name};")
                value = parameter
            assigned.append(f"{definition.name} = {value};")
        for tree in member.grid_trees():
            declared.append(f"long {tree.prefix}numel;")
            assigned.append(f"{tree.prefix}numel = {tree.numel};")
        return declared, assigned

    # ---- The text
    def _texts(self) -> list["_Text"]:
        found: dict[tuple[Any, ...], _Text] = {}
        for member in self.members:
            with V.set_kernel_handler(member):
                text = member.framed().getvalue()
                declared, assigned = self._assignments(member)
            key = (text, *declared, *member.locals)
            of = found.setdefault(key, _Text(text, declared, member))
            of.members.append((member.groups(self.group), assigned))
        return list(found.values())

    def codegen_kernel(self) -> str:
        """The program's text; KERNEL_NAME is where the name comes."""
        body, start, texts = IndentedBuffer(), 0, self._texts()
        for place, text in enumerate(texts):
            end = start + sum(x * y for (x, y), _ in text.members)
            with _branch(body, place, end if place + 1 < len(texts) else None):
                text.write(body, start)
            start = end
        parameters = self.declared + ["FAULT_PARAMETERS"] * self.reports_faults
        code = IndentedBuffer()
        code.writeline(f"__attribute__((reqd_work_group_size({self.group}, 1, 1)))")
        code.writeline(f"__kernel void KERNEL_NAME({', '.join(parameters)}) {{")
        with code.indent():
            words = max(sum(_words(member)) for member in self.members)
            if words:
                code.writeline(f"__local ulong shared[{words}];")
            code.writeline("const int group = get_group_id(0);")
            code.splice(body)
        code.writeline("}")
        whole = code.getvalue()
        has_vectors = any(member.width > 1 for member in self.members)
        combinations = set().union(*(member.combinations for member in self.members))
        moments = set().union(*(member.moments for member in self.members))
        return preamble(whole, has_vectors, combinations, moments) + whole

    # ---- The launch
    def has_fixed_range(self) -> bool:
        return True

    def range_text(self) -> str:
        counts = (member.groups(self.group) for member in self.members)
        threads = self.group * sum(x * y for x, y in counts)
        return f"({threads},), ({self.group},)"

    def call_kernel(self, name: str) -> None:
        """Writes the call into the wrapper."""
        device = V.graph.get_current_device_or_throw()
        V.graph.wrapper_code.generate_kernel_call(
            name, self.call_texts, device=device, triton=False, arg_types=self.call_types
        )


def rounds(scheduler: Any) -> list[list[Any]]:
    """Nodes that do not depend on one another, in lists: all kernels that can run when no call is
    left that can. A kernel so waits for others, but no longer than until there is no other work."""
    needs = {node: len(scheduler._get_unmet_dep_nodes(node)) for node in scheduler.nodes}
    users: dict[Any, list[Any]] = {}
    for node in scheduler.nodes:
        for before in scheduler._get_unmet_dep_nodes(node):
            users.setdefault(before, []).append(node)
    ready, lists = [node for node in scheduler.nodes if not needs[node]], []
    while ready:
        kernels = ForeachKernelSchedulerNode.combinable_nodes(ready)
        done = [node for node in ready if node not in kernels] or kernels
        if done is kernels:
            for own in _by_place(scheduler, kernels):
                lists += [own[i : i + MOST] for i in range(0, len(own), MOST)]
        ready = [node for node in ready if node not in done]
        for node in done:
            for user in users.get(node, ()):
                needs[user] -= 1
                if not needs[user]:
                    ready.append(user)
    return lists


def _by_place(scheduler: Any, kernels: list[Any]) -> list[list[Any]]:
    """Those of ocl, in a list for each device and stream."""
    streams, lists = getattr(scheduler, "node_to_stream", {}), {}
    for node in kernels:
        device = node.get_device()
        if isinstance(device, torch.device) and device.type == "ocl":
            lists.setdefault((device, streams.get(node, 0)), []).append(node)
    return list(lists.values())
