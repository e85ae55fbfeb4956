"""How a database means to answer a statement."""

import json
import re
from collections.abc import Sequence

from rota.store import Store
from rota.store.database import Tx
from rota.store.statements import POSTGRES, compile_statement


async def explained(store: Store, name: str, rows: Sequence[Sequence[object]] = (), **values: object) -> str:
    """On PostgreSQL, of a table as small as those of tests: what it would do were it not."""
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
        if tx.dialect is POSTGRES:
            await tx.script("set local enable_seqscan = off; set local enable_sort = off; set local jit = off")
            return "\n".join(row[0] for row in await tx.fetch_sql(f"explain {sql}"))
        return "\n".join(row[3] for row in await tx.fetch_sql(f"explain query plan {sql}"))

    return await store.database.read(body)


def literal(value: object) -> str:
    if isinstance(value, list):
        return f"array[{', '.join(map(literal, value))}]"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
