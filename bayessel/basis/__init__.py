"""Dictionaries of basis functions: named columns with one method, ``design(X)``.

`RBFDictionary` has radial functions, `PolynomialDictionary` polynomials, `FourierDictionary` sines and cosines,
`UserDictionary` columns of your own; ``+`` joins them. `lagged` makes the inputs of a series from its past.
Columns come in the order of the parts, and the bias (a column of ones) last. The library has one convention for
widths, r of :math:`e^{-d^2/r^2}`; `width` converts the others to it.
"""

from bayessel.basis.dictionary import Dictionary as Dictionary
from bayessel.basis.dictionary import JoinedDictionary as JoinedDictionary
from bayessel.basis.fourier import FourierDictionary as FourierDictionary
from bayessel.basis.lagged_design import LaggedDesign as LaggedDesign
from bayessel.basis.lagged_design import lagged as lagged
from bayessel.basis.lazy_design import LazyDesign as LazyDesign
from bayessel.basis.lazy_design import design_of as design_of
from bayessel.basis.polynomials import PolynomialDictionary as PolynomialDictionary
from bayessel.basis.radial_functions import KINDS as KINDS
from bayessel.basis.radial_functions import RBFDictionary as RBFDictionary
from bayessel.basis.radial_functions import radial as radial
from bayessel.basis.radial_functions import radial_slope as radial_slope
from bayessel.basis.radial_functions import scaled_distances as scaled_distances
from bayessel.basis.radial_functions import width as width
from bayessel.basis.user_columns import UserDictionary as UserDictionary
