"""The version of rota."""

__version__ = "0.1.0"
