"""`/api/v1/schedules`: the verbs of `client.schedules`."""

from rota.api.operations.verb_operation import routes_of
from rota.api.schedules.history import explain_schedule
from rota.client.schedules.schedules import SchedulesClient

ROUTES = routes_of(SchedulesClient, "schedules", explain=explain_schedule)
