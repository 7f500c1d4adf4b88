"""Rota on a Slurm cluster: the decisions of a plan, carried out by holding and releasing the jobs of a partition."""
