"""Sphinx's configuration. build.py makes the folder of pages that this is used with, and sets
OCLTENSOR_ROOT."""

import os
import pathlib
import re

root = pathlib.Path(os.environ["OCLTENSOR_ROOT"])
project = "ocltensor"
author = "the authors of ocltensor"
release = re.search(r"VERSION (\d+\.\d+\.\d+)", (root / "CMakeLists.txt").read_text())[1]
version = release

extensions = ["myst_parser", "autoapi.extension", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"ocltensor {release}"
html_copy_source = False
html_show_sourcelink = False

# Links between pages go by paths and headings, as where the pages come from.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# The Python API is read, not imported: it needs no device and no build.
autoapi_dirs = [str(root / "plugin/torch/torch_ocl")]
autoapi_options = ["members", "show-module-summary", "imported-members"]
autoapi_member_order = "groupwise"
autoapi_python_class_content = "both"
autoapi_keep_files = False
autoapi_add_toctree_entry = False
