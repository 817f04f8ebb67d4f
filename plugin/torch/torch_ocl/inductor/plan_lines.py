"""Statements of generated Python as steps of a plan."""

import ast
from collections.abc import Callable
from typing import Any

import torch

from torch_ocl import _C
from torch_ocl.inductor.plan_python import NoPlan, function_of, names_in, shown, written_names
from torch_ocl.inductor.plan_values import NoStep, Values

_guards = torch._C._dynamo.guards
_REINTERPRET = getattr(_guards, "_reinterpret_tensor", torch.ops.inductor._reinterpret_tensor)
_OPERATORS = {
    function: getattr(torch.ops.aten, function.__name__)
    for function in (torch.mm, torch.addmm, torch.bmm, torch.baddbmm, torch.convolution)
}
"""Functions of torch that generated code calls, whose arguments are named as in the schema."""
_OPERATORS[torch.ops.aten.index_put_] = torch.ops.aten.index_put_


class Lines(Values):
    """The plan of the statements that have been added."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._has_ended = False
        self._calls = {
            torch.empty_strided: self._allocate,
            _REINTERPRET: self._view,
            _guards.assert_size_stride: self._check_sizes,
            getattr(_guards, "assert_alignment", None): self._check_offset,
        }

    def add(self, statement: ast.stmt) -> None:
        if self._has_ended:
            raise NoPlan(f"a line behind the one that returns: {shown(statement)}")
        before = self.remember()
        try:
            self._add(statement)
        except (NoStep, TypeError, ValueError, RuntimeError):  # or what _C.Plan refuses
            self.restore(before)
            self._add_python(statement)
        if not self._has_ended:  # those of its last line are results
            self.release_temporaries()

    def finish(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``: the same in Python, for arguments that are no tensors or integers."""
        if not self._has_ended:
            raise NoPlan("no line returns")
        return self.finished(call)

    # ---- Statements
    def _add(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Tuple(elts)], ast.Name("args")) if all(
                isinstance(element, ast.Name) for element in elts
            ):
                self.plan.take([self.define(name.id) for name in elts])  # type: ignore[attr-defined]
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("args"), "clear"), [], [])):
                pass  # the plan has taken them
            case ast.Assign([ast.Name(name)], value):
                self.assign(name, value)
            case ast.Expr(ast.Call() as call):
                self._call(None, call)
            case ast.Delete(targets) if all(isinstance(t, ast.Name) for t in targets):
                self.free([target.id for target in targets])  # type: ignore[attr-defined]
            case ast.With([ast.withitem(ast.Call(function, [ast.Constant(int(index))]), None)]):
                self._on_device(function, index, statement.body)
            case ast.Return(ast.Tuple(elts)):
                self.plan.give([self._given(part) for part in elts])
                self._has_ended = True
            case ast.Return():
                raise NoPlan(f"a result that is no tuple: {shown(statement)}")
            case ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case _:
                raise NoStep

    def assign(self, name: str, value: ast.expr) -> None:
        match value:
            case ast.Name(other) if other in self.places:
                self.copy(name, other)
            case ast.Call():
                self._call(name, value)
            case ast.Subscript(ast.Name(other), ast.Constant(int(index))) if (
                other in self.several and index >= 0
            ):
                place = self.places[other]
                self.step("item", self.define(name), place, index)
            case _:
                number = self.number(value, by_python=False)
                self.step("compute", self.define(name), number)

    def _on_device(self, function: ast.expr, index: int, body: list[ast.stmt]) -> None:
        if self.constant(function) is not torch.ocl.device:
            raise NoStep
        self.step("enter_device", index)
        for statement in body:
            if ast.unparse(statement) != f"torch.ocl.set_device({index})":
                self.add(statement)
        if not self._has_ended:
            self.step("leave_device")

    def _given(self, part: ast.expr) -> tuple[int, Any]:
        """As _C.Plan.give takes it."""
        return (-1, part.value) if isinstance(part, ast.Constant) else (self.place(part), None)

    def _add_python(self, statement: ast.stmt) -> None:
        """What it assigns may be of any kind."""
        writes = written_names(statement)
        reads = [name for name in names_in(statement) if name in self.places]
        result = f"({''.join(name + ', ' for name in writes)})"
        function = function_of(reads, ast.unparse(statement), result, self.names)
        places = [self.places[name] for name in reads]
        self.step("python", function, places, [self.define(name) for name in writes])
        self.in_python.append(shown(statement))

    # ---- Calls
    def _call(self, name: str | None, call: ast.Call) -> None:
        """``name``: what the result is called."""
        if any(isinstance(a, ast.Starred) for a in call.args):
            raise NoStep
        function = self.constant(call.func)
        prepared = getattr(function, "__self__", function)  # or its method `enqueue`
        if isinstance(prepared, _C.PreparedKernel):
            self._launch(name, function, call)
        elif isinstance(function, type(torch.mm)) and function in self._calls:
            self._calls[function](name, call)
        else:
            self._operator(name, function, call)

    def _check_sizes(self, name: str | None, call: ast.Call) -> None:
        if name is not None or call.keywords or len(call.args) < 3:
            raise NoStep
        value, sizes, strides = call.args[:3]
        self._check(value, call, "check_sizes", self.numbers(sizes), self.numbers(strides))

    def _check_offset(self, name: str | None, call: ast.Call) -> None:
        match call.args:
            case [value, ast.Constant(int(size)), *_] if name is None and size > 0:
                self._check(value, call, "check_offset", size)
            case _:
                raise NoStep

    def _check(self, value: ast.expr, call: ast.Call, kind: str, *wanted: Any) -> None:
        """The check's own function has the text of its error."""
        place = self.place(value)
        reads = [name for name in names_in(call) if name in self.places]
        text = ast.unparse(call)

        def refuse(*values: Any) -> Any:
            return function_of(reads, text, "()", self.names)(*values)

        self.plan.python(refuse, [self.places[name] for name in reads], [])
        self.step(kind, place, *wanted)

    def _allocate(self, name: str | None, call: ast.Call) -> None:
        options = {k.arg: k.value for k in call.keywords}
        if name is None or len(call.args) != 2 or set(options) != {"device", "dtype"}:
            raise NoStep
        device, dtype = (self.constant(options[key]) for key in ("device", "dtype"))
        sizes, strides = map(self.numbers, call.args)
        self.step("allocate", self.define(name), sizes, strides, dtype, str(device))

    def _view(self, name: str | None, call: ast.Call) -> None:
        if name is None or call.keywords or len(call.args) not in (3, 4):
            raise NoStep
        source = self.place(call.args[0])
        sizes, strides = map(self.numbers, call.args[1:3])
        offset = self.number(call.args[3]) if len(call.args) == 4 else [("constant", 0)]
        self.step("view", self.define(name), source, sizes, strides, offset)

    def _launch(self, name: str | None, kernel: Any, call: ast.Call) -> None:
        if name is not None or call.keywords:
            raise NoStep
        arguments, threads, group = call.args, None, None
        if not isinstance(kernel, _C.PreparedKernel):
            if len(arguments) != 3 or not isinstance(arguments[0], ast.Tuple):
                raise NoStep
            threads, group = map(self.numbers, arguments[1:])
            arguments = arguments[0].elts
        given = [self._launched(argument) for argument in arguments]
        self.step("launch", kernel, given, threads, group)

    def _launched(self, argument: ast.expr) -> Any:
        if isinstance(argument, (ast.Name, ast.Call)):
            return self.place(argument)
        return self.number(argument)

    def _operator(self, name: str | None, function: Any, call: ast.Call) -> None:
        keywords = {str(k.arg): k.value for k in call.keywords}
        kinds = type(torch.mm), torch._ops.OpOverloadPacket
        if isinstance(function, kinds) and function in _OPERATORS:
            packet = _OPERATORS[function]
            function = packet.out if "out" in keywords else packet.default
        if type(function) is not torch._ops.OpOverload:
            raise NoStep
        schema, given = function._schema, []
        for position, argument in enumerate(schema.arguments):
            if position < len(call.args) and not argument.kwarg_only:
                given.append(self._argument(call.args[position], argument.real_type))
            elif argument.name in keywords:
                given.append(self._argument(keywords.pop(argument.name), argument.real_type))
            elif argument.has_default_value():
                given.append(("default", None))
            else:
                raise NoStep
        positions = sum(not argument.kwarg_only for argument in schema.arguments)
        if keywords or len(call.args) > positions:
            raise NoStep
        to = None if name is None else self.define(name)
        self.step("call", to, schema.name, schema.overload_name, given)
        returns = schema.returns
        if name is not None and (len(returns) != 1 or isinstance(returns[0].type, torch.ListType)):
            self.several.add(name)

    def _argument(self, value: ast.expr, type_: Any) -> tuple[str, Any]:
        """As _C.Plan.call takes it."""
        if isinstance(type_, torch.OptionalType):
            type_ = type_.getElementType()
        if not self.varies(value):
            return "constant", self.constant(value)
        if isinstance(type_, torch.TensorType):
            return "value", self.place(value)
        if isinstance(type_, torch.ListType) and isinstance(value, (ast.List, ast.Tuple)):
            element = type_.getElementType()
            return "list", [self._argument(part, element) for part in value.elts]
        if isinstance(type_, torch.IntType) or str(type_) == "SymInt":
            return "integer", self.number(value)
        if isinstance(type_, torch.NumberType):
            return "value", self.place(value)
        raise NoStep
