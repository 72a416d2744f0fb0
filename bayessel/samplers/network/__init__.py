"""The network's sampler: precisions by Gibbs, weights by trajectories, and the evidence by annealing."""
