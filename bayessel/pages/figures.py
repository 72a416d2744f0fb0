"""Figures and axes that show themselves: a picture where a notebook's cell ends with one, a window where there are any.

They are matplotlib's own, and not known to pyplot where pictures are shown otherwise: nothing is shown twice, and
nothing is left behind in long runs.
"""

from __future__ import annotations

import base64
import os
import sys
from typing import Any, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayessel.pages.page import png


def in_notebook() -> bool:
    """Whether figures are shown below the cells of a notebook (the inline backend)."""
    if "matplotlib.pyplot" not in sys.modules and "MPLBACKEND" not in os.environ:
        return False  # asking would choose a backend
    return "inline" in matplotlib.get_backend().lower()


def _image(figure: Figure) -> str | None:
    """An image tag for readers of HTML that are no notebook; a notebook takes the PNG."""
    if in_notebook():
        return None
    data = base64.b64encode(png(figure)).decode()
    return f'<img alt="figure" style="max-width:100%" src="data:image/png;base64,{data}">'


def _whole(ax: Axes) -> Figure:
    """The figure that axes are in, not a part of it."""
    figure: Any = ax.get_figure(root=True)
    return cast(Figure, figure)


class ShownFigure(Figure):
    """A figure that a notebook shows as a picture, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        return png(self)

    def _repr_html_(self) -> str | None:
        return _image(self)


class ShownAxes(Axes):
    """Axes that a notebook shows as the picture that they are in."""

    def _repr_png_(self) -> bytes:
        return png(_whole(self))

    def _repr_html_(self) -> str | None:
        return _image(_whole(self))


def new_figure(width: float, height: float) -> ShownFigure:
    """An empty figure of so many inches that pyplot does not know."""
    return ShownFigure(figsize=(width, height), layout="constrained")


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes that were given, or else those of a new figure, which pyplot knows unless in a notebook."""
    if ax is not None:
        return ax
    if in_notebook():
        return new_figure(width, height).add_subplot(axes_class=ShownAxes)
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def panels_for(ax: Axes | None, down: int, across: int, width: float, height: float) -> list[Axes]:
    """Axes for so many panels, row by row: of a new figure (`width` and `height` of each), or in the place of `ax`."""
    if ax is not None:
        if down * across == 1:
            return [ax]
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError(
                "several panels take the place of axes of a grid (pyplot.subplots); give such axes, or None"
            )
        ax.set_axis_off()
        cells = place.subgridspec(down, across)
        figure = _whole(ax)
        return [figure.add_subplot(cells[k // across, k % across]) for k in range(down * across)]
    if in_notebook():
        figure = new_figure(width * across, height * down)
    else:
        from matplotlib import pyplot

        figure = pyplot.figure(FigureClass=ShownFigure, figsize=(width * across, height * down), layout="constrained")
    return list(figure.subplots(down, across, squeeze=False).ravel())


class ShownDisplay:
    """Base of displays, which follow scikit-learn's convention: ``from_estimator``, ``plot``, ``figure_``, ``axes_``.

    As the last line of a notebook's cell it is the picture, or nothing more where the axes were given.
    """

    axes_: list[Axes]
    _given: bool = False

    @property
    def figure_(self) -> Figure:
        """The figure that was drawn in."""
        return _whole(self.axes_[0])

    @property
    def ax_(self) -> Axes:
        """The first panel."""
        return self.axes_[0]

    def _ipython_display_(self) -> None:
        from IPython.display import Image, display

        if not self._given:
            display(Image(png(self.figure_)))

    def _repr_html_(self) -> str | None:
        return None if self._given else _image(self.figure_)


def handed_over(figure: ShownFigure) -> ShownFigure:
    """The figure, which pyplot now knows where it opens windows: its ``show()`` shows it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and not in_notebook() and _opens_windows():
        pyplot.figure(FigureClass=lambda *_, **__: figure)
    return figure


def _opens_windows() -> bool:
    from matplotlib.backends.registry import BackendFilter, backend_registry

    return matplotlib.get_backend().lower() in backend_registry.list_builtin(BackendFilter.INTERACTIVE)
