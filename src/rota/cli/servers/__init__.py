"""Commands that stay: `rota dev`, `rota server`, `rota worker`; and `rota init`."""
