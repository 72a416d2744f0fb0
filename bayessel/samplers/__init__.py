"""Samplers for PyMC models: persistent-momentum Hamiltonian steps, exact Gibbs steps, and the driver that runs them.

The formulas are plain array functions (`leapfrog`, `horowitz`, `conditionals`, …) that load without PyMC;
the step methods are thin shells around them. This module imports nothing, so that each part can be used alone.
"""
