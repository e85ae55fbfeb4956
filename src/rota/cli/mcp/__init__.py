"""Model Context Protocol: rota's verbs as tools of agents."""
