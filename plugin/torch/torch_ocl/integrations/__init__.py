"""Makes libraries that know a fixed list of devices know ``ocl``, too, when they are imported.

``table.py`` lists the libraries; each has a file here, which changes nothing for other devices.
``torch.ocl.integrations()`` tells what was done, ``OCLTENSOR_INTEGRATIONS`` chooses.
"""

from torch_ocl.integrations._gguf import unpacked_counts
from torch_ocl.integrations._hook import install
from torch_ocl.integrations._state import State, integrations

__all__ = ["State", "install", "integrations", "unpacked_counts"]
