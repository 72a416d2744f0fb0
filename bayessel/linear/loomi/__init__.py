"""Forward selection of a two-class classifier by leave-one-out mutual information."""

from bayessel.linear.loomi._fit_loomi import fit_loomi
from bayessel.linear.loomi.information import mutual_information
from bayessel.linear.loomi.penalty import fitted_penalty
from bayessel.linear.loomi.result import LOOMIFit

__all__ = ["LOOMIFit", "fit_loomi", "fitted_penalty", "mutual_information"]
