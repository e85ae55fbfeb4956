"""Read the plan that a database chooses for a statement."""

import json
import re
from collections.abc import Sequence

from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.databases.statements import POSTGRES, compile_statement


async def explained(store: Store, name: str, rows: Sequence[Sequence[object]] = (), **values: object) -> str:
    """Return the plan of a statement, planned as the store plans it, with index scans."""
    dialect = store.database.dialect
    statement = compile_statement(name, dialect, manual_clock=True)
    columns = {column: [row[place] for row in rows] for place, column in enumerate(statement.columns)}
    given = {"now": store.clock.micros(), "rows": json.dumps(rows), **columns, **values}
    if dialect is POSTGRES:
        numbered = {str(place): literal(given[one]) for place, one in enumerate(statement.parameters, 1)}
        sql = re.sub(r"\$(\d+)", lambda match: numbered[match[1]], statement.sql)
    else:
        sql = re.sub(r"(?<![:\w]):([a-z_]+)", lambda match: literal(given[match[1]]), statement.sql)

    async def body(tx: Tx) -> str:
        await walk_indexes(tx, in_order=True)
        if tx.dialect is POSTGRES:
            return "\n".join(row[0] for row in await tx.fetch_sql(f"explain {sql}"))
        return "\n".join(row[3] for row in await tx.fetch_sql(f"explain query plan {sql}"))

    return await store.database.read(body)


def literal(value: object) -> str:
    if isinstance(value, list):
        return f"array[{', '.join(map(literal, value))}]"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
