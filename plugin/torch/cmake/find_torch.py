"""Prints torch's version and folder, and SUFFIX=FOLDER of Python's modules and headers, as a CMake
list."""

import importlib.util
import pathlib
import re
import sys
import sysconfig

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    sys.exit(f"there is no module torch in {sys.prefix}")
folder = pathlib.Path(spec.origin).parent
version = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text())
if version is None or not (folder / "include" / "c10").is_dir():
    sys.exit(f"the torch in {folder} has no version or no headers")
include = pathlib.Path(sysconfig.get_path("include"))
if not (include / "Python.h").is_file():
    sys.exit(f"{include} has no Python.h: install the headers of this Python (Debian: python3-dev)")
print(version[1], folder, f"{sysconfig.get_config_var('EXT_SUFFIX')}={include}", sep=";")
