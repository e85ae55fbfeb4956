"""`/api/v1/database`: the standing of the database, and its acceptance as the original."""

from rota.api.operations.verb_operation import routes_of
from rota.client.monitoring.database import DatabaseClient

ROUTES = routes_of(DatabaseClient, "database")
