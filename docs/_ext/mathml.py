"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from latex2mathml.converter import convert


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    from docutils.nodes import SkipNode

    raise SkipNode


def _block(writer, node):
    from docutils.nodes import SkipNode

    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
