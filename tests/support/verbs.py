"""What tests ask of declared verbs."""

import msgspec

from rota.verbs.parameters import request_of
from rota.verbs.verb import verbs_of


def fields_of(kind: type, name: str) -> tuple[str, ...]:
    """Return the fields of the body of a verb: `fields_of(QuotasClient, "update")`."""
    declared = next(declared for declared in verbs_of(kind) if declared.name == name)
    body: type[msgspec.Struct] = request_of(declared).body
    return body.__struct_encode_fields__
