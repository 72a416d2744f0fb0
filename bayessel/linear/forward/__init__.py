"""Forward selection and backward elimination: the family of orthogonal least squares."""

from bayessel.linear.forward._forward_select import forward_select
from bayessel.linear.forward.result import ForwardFit

__all__ = ["ForwardFit", "forward_select"]
