"""Speed, memory and accuracy of the engines beside their peers and beside bare BLAS and LAPACK, in one run."""
