"""No models: rota's tables are its own. But Django tells only apps that have this module of a migration."""
