"""Run by ComfyUI before it imports torch: lets management.py change its device management."""

import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).with_name("management.py")))["install"]()
