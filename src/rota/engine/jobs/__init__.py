"""The handlers that rota ships: HTTP requests, commands, webhooks, e-mail."""
