"""`/api/v1/notifications`: who is notified of which events. Secrets are never returned."""

from rota.api.operations.verb_operation import routes_of
from rota.client.alerts.notifications import NotificationsClient

ROUTES = routes_of(NotificationsClient, "notifications")
