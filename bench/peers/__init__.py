"""The contenders, by name. graphile-worker tuned comes first: ratios are taken to it."""

from bench.driver import Driver
from bench.peers.graphile import GraphilePreset, GraphileTuned
from bench.peers.huey import Huey
from bench.peers.pgboss import PgBoss
from bench.peers.pgqueuer import Pgqueuer
from bench.peers.procrastinate import Procrastinate
from bench.peers.rota import RotaPostgres, RotaSqlite

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
    )
}
