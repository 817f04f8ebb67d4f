"""What other backends have and this one has not yet: it says so."""


class Later:
    """A part that is not available, with the reason."""

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self._reason = reason

    def is_available(self) -> bool:
        """False; ``unavailable_reason()`` says why."""
        return False

    def unavailable_reason(self) -> str:
        return self._reason

    def version(self) -> None:
        return None

    def __repr__(self) -> str:
        return f"<torch.backends.ocl.{self._name}: not available: {self._reason}>"


class QuantizedEngines(Later):
    """``torch.backends.ocl.quantized``, as ``torch.backends.quantized``."""

    @property
    def supported_engines(self) -> list[str]:
        return ["none"]

    @property
    def engine(self) -> str:
        return "none"

    @engine.setter
    def engine(self, value: str) -> None:
        if value != "none":
            raise RuntimeError(f"quantized engine {value!r} is not supported: {self._reason}")


cusparselt = Later("cusparselt", "no kernels for 2:4 semi-structured sparse matrices yet")
weight_int8 = Later("weight_int8", "no matrix products with int8 weights yet")
weight_int4 = Later("weight_int4", "no matrix products with int4 weights yet")
quantized = QuantizedEngines("quantized", "no kernels for quantized tensors yet")
