"""Version of the package, apart from its public names: who asks for it loads nothing else."""

__version__ = "0.1.0"
