import re

from docutils import nodes
from latex2mathml.converter import convert
from pydantic import BaseModel

import rota

project = "Rota"
author = "The Rota authors"
release = version = rota.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"Rota {release}"

# Docstrings put code into single backticks and name things by their short names.
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Array", "Int", "Preemption")}


def plain_signature(app, what, name, thing, options, signature, returns):
    # The rules of a pydantic field belong to the page of the spec; here they would bury the names.
    if isinstance(thing, type) and issubclass(thing, BaseModel) and thing.model_fields:
        fields = thing.model_fields.items()
        shown = [key if field.is_required() else f"{key}={field.default!r}" for key, field in fields if key != "distribution"]
        return f"(*, {', '.join(shown)})", returns
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns))


def _mathml(self, node, display):
    # Formulas as MathML, which browsers draw by themselves: no script from the network.
    formula = convert(node.astext(), display="block" if display else "inline")
    self.body.append(f'<div class="formula">{formula}</div>' if display else formula)
    raise nodes.SkipNode


def setup(app):
    app.connect("autodoc-process-signature", plain_signature)
    app.add_html_math_renderer(
        "mathml",
        (lambda self, node: _mathml(self, node, False), None),
        (lambda self, node: _mathml(self, node, True), None),
    )
