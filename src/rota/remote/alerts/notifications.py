"""`client.notifications` over HTTP."""

from rota.client.alerts.notifications import NotificationsClient
from rota.remote.verbs import Remote


class RemoteNotifications(Remote, NotificationsClient):
    """Notifications by webhook or e-mail, which the server sends. Secrets are never returned."""
