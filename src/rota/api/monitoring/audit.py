"""`/api/v1/audit`: the audit log."""

from rota.api.operations.verb_operation import routes_of
from rota.client.monitoring.audit import AuditVerbs

ROUTES = routes_of(AuditVerbs)
