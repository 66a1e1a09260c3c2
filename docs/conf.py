"""Settings of the documentation site; built by `make docs`, without a network."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1] / "src")]

project = "afape"
author = "The afape developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
html_theme = "furo"
html_title = "afape"
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_extra_path = ["llms.txt"]
exclude_patterns = ["_ext", "conftest.py", "make.py"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
default_role = "code"  # docstrings put names into single backquotes
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what arguments are
napoleon_numpy_docstring = True
napoleon_use_ivar = True
nitpicky = False
suppress_warnings = ["docutils", "ref.python"]  # docstrings are written for people at a prompt first
