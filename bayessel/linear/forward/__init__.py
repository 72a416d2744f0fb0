"""Forward selection and backward elimination: the family of orthogonal least squares."""

from bayessel.linear.forward._forward_select import forward_select

__all__ = ["forward_select"]
