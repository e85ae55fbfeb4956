"""The part of rota that acts: the loops, the worker, handlers and their isolation."""
