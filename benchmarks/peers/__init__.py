"""The contenders, by name. graphile-worker tuned comes first: ratios are taken to it."""

from benchmarks.harness.driver import Driver
from benchmarks.peers.graphile import GraphileOne, GraphilePreset, GraphileTuned
from benchmarks.peers.huey import Huey
from benchmarks.peers.pgboss import PgBoss
from benchmarks.peers.pgqueuer import Pgqueuer
from benchmarks.peers.procrastinate import Procrastinate
from benchmarks.peers.rota import RotaOne, RotaPostgres, RotaSqlite

DRIVERS: dict[str, type[Driver]] = {
    driver.name: driver
    for driver in (
        GraphileTuned,
        GraphilePreset,
        PgBoss,
        Pgqueuer,
        Procrastinate,
        RotaPostgres,
        Huey,
        RotaSqlite,
        GraphileOne,
        RotaOne,
    )
}
