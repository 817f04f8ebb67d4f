"""Kernel providers, and operators that are switched off."""

import difflib
import fnmatch
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch_ocl import _C
from torch_ocl.backends._scope import Scope, joined

OPERATIONS = "OCLTENSOR_DISABLED_OPERATIONS"
COMPOSITES = "OCLTENSOR_DISABLED_COMPOSITES"
PROVIDERS = "OCLTENSOR_DISABLED_PROVIDERS"
ALGORITHMS = "OCLTENSOR_DISABLED_ALGORITHMS"
_KEYS = ("PrivateUse1", "ocl")


@dataclass(frozen=True)
class ProviderRow:
    """A provider's row of the plugin's report."""

    name: str
    library: str
    available: bool
    enabled: bool
    version: str
    what: str
    missing: str
    operators: list[str]  # patterns


def report_rows(subject: str) -> list[dict[str, Any]]:
    """The plugin's report on a subject; ``tb_switch_api.report`` names the members of a row."""
    return json.loads(_C.report(subject))


def time_of(microseconds: float | None) -> float:
    """A time of a report, which has none of a choice that failed: infinite then."""
    return math.inf if microseconds is None else microseconds


def provider_rows() -> list[ProviderRow]:
    return [ProviderRow(**row) for row in report_rows("providers")]


class ProviderController:
    """One source of kernels: ``torch.backends.ocl.portable`` and so on."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _row(self) -> ProviderRow:
        return next(row for row in provider_rows() if row.name == self._name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def available(self) -> bool:
        """Whether this version has the provider; ``unavailable_reason`` says why not."""
        return self._row().available

    @property
    def unavailable_reason(self) -> str:
        """Why the provider is not available; empty if it is."""
        return self._row().missing

    @property
    def version(self) -> str | None:
        return self._row().version or None

    @property
    def enabled(self) -> bool:
        """Whether the provider's kernels may be used. If no other provider is left, its operators
        are disabled."""
        return self._row().enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value:
            self.enable()
        else:
            self.disable()

    def enable(self) -> None:
        _C.remove_from_setting(PROVIDERS, [self._name])

    def disable(self) -> None:
        _C.add_to_setting(PROVIDERS, [self._name])

    def disabled(self) -> Scope:
        """A context, or decorator, in which the provider is disabled."""
        return Scope(lambda: [(PROVIDERS, self._name)])

    def __repr__(self) -> str:
        row = self._row()
        state = "available" if row.available else f"unavailable: {row.missing}"
        return f"ProviderController({self._name}, {state}, {'en' if row.enabled else 'dis'}abled)"


_controllers: dict[str, ProviderController] = {}


def controller(name: str) -> ProviderController:
    """The controller of a provider. ValueError for an unknown name."""
    if name not in _controllers:
        names = all_providers()
        if name not in names:
            raise ValueError(f"Unknown provider: {name}. Providers: {', '.join(names)}")
        _controllers[name] = ProviderController(name)
    return _controllers[name]


def all_providers() -> list[str]:
    return [row.name for row in provider_rows()]


def available_providers() -> list[str]:
    return [row.name for row in provider_rows() if row.available]


def get_provider_operations(name: str) -> list[str]:
    """The operators for which a provider has kernels, sorted; empty if it is not available."""
    controller(name)  # raises ValueError for an unknown name
    row = next(row for row in provider_rows() if row.name == name)
    if not row.available:
        return []
    return sorted(n for n in _C.plugin_operators() if any(_fits(p, n) for p in row.operators))


# ---- Operators


def _fits(pattern: str, name: str) -> bool:
    return any(fnmatch.fnmatchcase(n, pattern) for n in (name, name.split(".")[0]))


def _resolve(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """The plugin's operators and the adapter's composites that match patterns.

    ValueError, with similar names, if a pattern matches none.
    """
    own, composed = _C.plugin_operators(), _C.composite_operators()
    chosen: tuple[list[str], list[str]] = ([], [])
    for pattern in patterns:
        if pattern in ("copy", "copy.out"):
            raise ValueError("copy cannot be disabled: the fallback of every operator needs it")
        plain = pattern.removeprefix("aten::")
        found = ([n for n in own if _fits(plain, n)], [n for n in composed if _fits(plain, n)])
        if not any(found):
            names = sorted({n.split(".")[0] for n in (*own, *composed)})
            near = ", ".join(difflib.get_close_matches(plain, names))
            raise ValueError(
                f"no operator of ocl fits {pattern!r}" + (f"; near are: {near}" if near else "")
            )
        chosen[0].extend(n for n in found[0] if n != "copy.out")
        chosen[1].extend(found[1])
    return chosen


def disable_operations(*patterns: str) -> None:
    """Switches operators off, for all providers.

    Args:
        patterns: names ("add", "add.out") or patterns with ``*`` and ``?`` ("linalg_*").

    A disabled operator runs on the CPU if ``OCLTENSOR_ENABLE_FALLBACK`` is 1; otherwise it raises
    NotImplementedError, which says that it is disabled. "add" means ``add``, ``add_`` and all
    overloads. Operators that the adapter composes of others ("trace") are included; disable these
    while no other thread uses them. ValueError if a pattern matches no operator.
    """
    own, composed = _resolve(patterns)
    if own:
        _C.add_to_setting(OPERATIONS, own)
    if composed:
        _C.add_to_setting(COMPOSITES, composed)


def enable_operations(*patterns: str) -> None:
    """Switches operators on again, including those that a context has switched off."""
    own, composed = _resolve(patterns)
    _C.remove_from_setting(OPERATIONS, [*own, *patterns])
    _C.remove_from_setting(COMPOSITES, composed)


def operations_disabled(*patterns: str) -> Scope:
    """A context, or decorator, in which operators are switched off; see ``disable_operations``."""

    def values() -> list[tuple[str, str]]:
        own, composed = _resolve(patterns)
        settings = [(OPERATIONS, joined(own)), (COMPOSITES, joined(composed))]
        return [(name, value) for name, value in settings if value]

    return Scope(values)


def disabled_operations() -> list[str]:
    """The operators that are switched off, sorted."""
    names = _C.get_setting(OPERATIONS).split(",") + _C.get_setting(COMPOSITES).split(",")
    return sorted(name.strip() for name in names if name.strip())


def is_operation_disabled(name: str) -> bool:
    """Whether any operator of this name, or that matches this pattern, is switched off."""
    return any(_fits(name, n) or _fits(n, name) for n in disabled_operations())


def _check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if key not in _KEYS:
            raise ValueError(
                f"ocl has no operators under the dispatch key {key!r}: they are all under "
                "'PrivateUse1' (or, the same, 'ocl'); gradients are PyTorch's own"
            )


def disable_dispatch_keys(*keys: str) -> None:
    """Switches off all operators of a dispatch key. There is only one: ``PrivateUse1``."""
    _check_keys(keys)
    if keys:
        disable_operations("*")


def enable_dispatch_keys(*keys: str) -> None:
    """Switches all operators of a dispatch key on again."""
    _check_keys(keys)
    if keys:
        enable_operations("*")


# ---- Algorithms


@dataclass(frozen=True)
class Algorithm:
    """One of the algorithms of an operator family."""

    family: str
    id: str
    runs: int
    is_last_choice: bool
    disabled: bool
    is_general: bool
    description: str


def algorithms() -> list[Algorithm]:
    """The algorithms that devices choose among, in the order in which they are tried.

    ``runs`` counts since the process began. The general algorithm of a family takes every problem,
    is never measured, and cannot be disabled.
    """
    return [
        Algorithm(
            family=row["family"],
            id=row["id"],
            runs=row["runs"],
            is_last_choice=row["last"],
            disabled=row["disabled"],
            is_general=row["general"],
            description=row["name"],
        )
        for row in report_rows("algorithms")
    ]


def last_choices() -> dict[str, str]:
    """The algorithm that ran last in each family ("matmul", "conv", "fft", "attention", ...)."""
    return {a.family: a.id for a in algorithms() if a.is_last_choice}


def algorithms_disabled(*patterns: str) -> Scope:
    """A context, or decorator, without some algorithms ("matmul.packed", "conv.*").

    The next algorithm that takes a problem runs instead. RuntimeError, with similar names, if a
    pattern matches none.
    """
    return Scope(lambda: [(ALGORITHMS, joined(patterns))])


@dataclass(frozen=True)
class Measurement:
    """The time of an algorithm, measured because of ``benchmark``."""

    problem: str
    id: str
    microseconds: float
    is_best: bool


def measurements() -> list[Measurement]:
    """What ``benchmark`` has measured: one entry per device, class of shapes and algorithm."""
    return [
        Measurement(row["problem"], row["id"], time_of(row["microseconds"]), row["best"])
        for row in report_rows("measurements")
    ]


def forget_measurements() -> None:
    """Removes all measurements, so that ``benchmark`` measures again."""
    _C.set_setting("forget_measurements", "1")
