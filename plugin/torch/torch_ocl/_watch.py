"""What a recording has read beside its arguments, and whether it is still so at a later call.

A replay uses the addresses and the modes of the recording: a parameter that was replaced since
then, by ``load_state_dict(assign=True)``, ``.to()``, ``p.data = ...`` or a parametrization, would
have no effect, and nor would a submodule's ``eval()``. The look at them is one call of C++, some
ten nanoseconds for each.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_ocl import _C


class _Place(NamedTuple):
    """A dictionary's entry that shall stay the object that it is. The order is csrc's."""

    holder: dict[str, Any]
    name: str | None  # None: the number of entries is watched, not one of them
    value: Any
    twin: torch.Tensor | None  # of a tensor: one with its memory, sizes and strides
    address: int
    needs_gradient: bool
    text: str


def _module_of(function: Any) -> torch.nn.Module | None:
    """The module whose state a callable reads, as far as that can be seen."""
    owner = function if isinstance(function, torch.nn.Module) else None
    owner = owner or getattr(function, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


def _places(module: torch.nn.Module) -> Iterator[_Place]:
    for path, part in module.named_modules():
        own = vars(part)
        prefix = path + "." if path else ""
        yield _Place(own, "training", part.training, None, 0, False, f"the mode of {path!r}")
        for kind in ("_parameters", "_buffers", "_modules"):
            yield _Place(own, kind, own[kind], None, 0, False, f"{prefix}{kind}")
        children = own["_modules"]
        text = f"the number of modules of {path!r}"
        yield _Place(children, None, len(children), None, 0, False, text)
        for name, child in children.items():
            yield _Place(children, name, child, None, 0, False, f"{prefix}{name}")
        for holder in (own["_parameters"], own["_buffers"], own):
            for name, value in holder.items():
                if isinstance(value, torch.Tensor) and value.layout is torch.strided:
                    twin, needs = value.detach(), value.requires_grad
                    text = f"{prefix}{name}"
                    yield _Place(holder, name, value, twin, value.data_ptr(), needs, text)


def _modes() -> tuple[bool, torch.dtype | None]:
    """Autocast of ocl: its type, if it is on."""
    is_on = torch.is_autocast_enabled("ocl")
    return is_on, torch.get_autocast_dtype("ocl") if is_on else None


class Watch:
    """To be made before the recording, and ended after it."""

    def __init__(self, function: Any) -> None:
        self._module = _module_of(function)
        self._places: list[_Place] = []
        self._autocast = _modes()
        self._has_gradients = torch.is_grad_enabled()

    def begin(self) -> None:
        """Before the recording, after the runs that warm up."""
        self._places = list(_places(self._module)) if self._module is not None else []

    def end(self) -> None:
        """Forgets what the recorded function itself has replaced: results that it keeps.

        RuntimeError for buffers: replays would read the replaced ones forever.
        """
        stayed = []
        for place in self._places:
            if place.name is None or place.holder.get(place.name) is place.value:
                stayed.append(place)
            elif place.holder is not None and place.text in self._buffers():
                raise RuntimeError(
                    f"make_graphed_callables: the module replaces its buffer {place.text} when it "
                    "is called, which replays would not do: change it in place, as by copy_()"
                )
        self._places = stayed

    def _buffers(self) -> set[str]:
        assert self._module is not None
        return {name for name, _ in self._module.named_buffers(remove_duplicate=False)}

    def difference(self) -> str | None:
        """Why a replay would not be what a call is; None if it would; empty while something looks
        on that shall see the callable's own work: a recording, a trace, a dispatch mode."""
        if (
            _C.is_current_stream_capturing()
            or torch.jit.is_tracing()
            or torch._C._len_torch_dispatch_stack() > 0
        ):
            return ""
        if torch.is_grad_enabled() and not self._has_gradients:
            return "it was recorded without gradients"
        if _modes() != self._autocast:
            return "autocast is not as it was in the recording"
        if self._places and (i := _C.first_difference(self._places)) >= 0:
            return f"{self._places[i].text} is not what it was in the recording"
        return None
