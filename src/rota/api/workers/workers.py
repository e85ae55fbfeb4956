"""`/api/v1/workers`: list workers, and drain, resume, stop or update them."""

from rota.api.operations.verb_operation import routes_of
from rota.client.workers.workers import WorkersClient

ROUTES = routes_of(WorkersClient, "workers")
