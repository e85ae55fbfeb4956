"""Shows that rota keeps its promises: a simulation with a checker, crash points, planted bugs."""
