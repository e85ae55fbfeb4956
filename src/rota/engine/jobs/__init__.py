"""Handlers that rota ships: HTTP requests, commands, webhooks, e-mail."""
