"""Applies integrations and remembers what became of each."""

import importlib
import importlib.metadata
import re
import sys
import threading
import warnings
from typing import NamedTuple

from torch_ocl.integrations import _choice
from torch_ocl.integrations._patch import Patch
from torch_ocl.integrations.table import BY_MODULE, TABLE, Integration


class State(NamedTuple):
    """What became of an integration; ``reason`` says why it was refused or is off."""

    library: str
    version: str
    """Empty while the library has not been imported."""
    state: str
    """``"applied"``, ``"refused"``, ``"off"`` or ``"not imported"``"""
    reason: str


_lock = threading.RLock()
_states: dict[str, State] = {}
_patches: dict[str, Patch] = {}


def integrations() -> list[State]:
    """The libraries that are made to know ocl, and what was done so far.

    >>> for row in torch.ocl.integrations():
    ...     print(*row)
    """
    with _lock:
        return [_states.get(r.library, State(r.library, "", "not imported", "")) for r in TABLE]


def apply(name: str) -> None:
    """Makes a module know ocl, which has just been imported. Warns instead of raising."""
    row = BY_MODULE[name]
    with _lock:
        before = _states.get(row.library)
        if before is None:
            before = _states[row.library] = _first_look(row)
            if before.state == "refused":
                _warn(before)
        if before.state != "applied":
            return
        patch = _patches.setdefault(row.library, Patch())
        try:
            file = importlib.import_module(f"torch_ocl.integrations.{row.library}")
            file.APPLY[name](sys.modules[name], patch)
        except Exception as error:  # whatever a library has become, importing it works
            patch.undo()
            reason = f"{type(error).__name__}: {error}"
            _states[row.library] = before._replace(state="refused", reason=reason)
            _warn(_states[row.library])


def _first_look(row: Integration) -> State:
    version = _version(row)
    try:
        off = _choice.reason_against(row.library)
    except ValueError as error:
        return State(row.library, version, "refused", str(error))
    if off:
        return State(row.library, version, "off", off)
    if not version:
        return State(row.library, version, "refused", "its version is not known")
    if not _numbers(row.first) <= _numbers(version) < _numbers(row.before):
        known = f"versions from {row.first} on and before {row.before} are known"
        return State(row.library, version, "refused", known)
    return State(row.library, version, "applied", "")


def _version(row: Integration) -> str:
    """Empty where it is not known, as of a library of which parts are missing."""
    top = sys.modules.get(row.modules[0].partition(".")[0])
    try:
        known = importlib.metadata.version(row.library)
    except importlib.metadata.PackageNotFoundError:
        known = None
    return str(known or getattr(top, "__version__", ""))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def _warn(state: State) -> None:
    warnings.warn(
        f"ocl: {state.library} {state.version} is left as it is and may not find ocl: "
        f"{state.reason}. Install a version that is known, or pass it torch.device('ocl') where it "
        f"takes one; {_choice.SETTING}=-{state.library} silences this",
        RuntimeWarning,
        stacklevel=2,
    )
