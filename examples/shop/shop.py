"""A shop in FastAPI and SQLAlchemy: an order and its work are one commit; a worker charges, ships and thanks."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from rota import Fail, Rota, chain, cron, injected

URL = os.environ.get("ROTA_DATABASE_URL", "postgresql://localhost/shop")


def for_sqlalchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+asyncpg://")


engine = create_async_engine(for_sqlalchemy(URL))
sessions = async_sessionmaker(engine, expire_on_commit=False)
jobs = Rota(URL)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str]
    total: Mapped[Decimal]
    state: Mapped[str] = mapped_column(default="new")
    run: Mapped[str | None]


@dataclass
class Mailer:
    """Stands for a connection to a mail server."""

    sent: list[str] = field(default_factory=list)

    async def send(self, to: str, text: str) -> None:
        self.sent.append(f"{to}: {text}")


@jobs.lifespan
async def mailer(_: Rota) -> AsyncIterator[Mailer]:
    yield Mailer()


@dataclass
class Receipt:
    order: int
    email: str
    amount: Decimal


@jobs.job(max_attempts=5, backoff="10s")
async def charge(order: int) -> Receipt:
    async with sessions.begin() as session:
        bought = await session.get_one(Order, order)
        if bought.total > 1000:
            raise Fail("the bank refused the card")
        bought.state = "paid"
        return Receipt(order, bought.email, bought.total)


@jobs.job(limit={"max": 2})
async def ship(receipt: Receipt) -> Receipt:
    async with sessions.begin() as session:
        (await session.get_one(Order, receipt.order)).state = "shipped"
    return receipt


@jobs.job
async def thank(receipt: Receipt, mailer: Mailer = injected) -> str:
    await mailer.send(receipt.email, f"order {receipt.order}: {receipt.amount} EUR, thank you")
    return mailer.sent[-1]


@jobs.on("run.failed", jobs=[charge], include_payload=True)
async def give_up(event: dict[str, Any]) -> None:
    async with sessions.begin() as session:
        (await session.get_one(Order, event["run"]["payload"]["order"])).state = "refused"


@jobs.job(schedule=cron("0 6 * * *", tz="Europe/Berlin"))
async def report() -> dict[str, int]:
    async with sessions() as session:
        states = (await session.scalars(select(Order.state))).all()
    return {state: states.count(state) for state in set(states)}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await jobs.aclose()
    await engine.dispose()


web = FastAPI(lifespan=lifespan)


async def session() -> AsyncIterator[AsyncSession]:
    async with sessions() as opened:
        yield opened


class Wanted(BaseModel):
    email: str
    total: Decimal = Field(gt=0)


@web.post("/orders", status_code=202)
async def buy(wanted: Wanted, session: Annotated[AsyncSession, Depends(session)]) -> dict[str, Any]:
    async with session.begin():
        order = Order(email=wanted.email, total=wanted.total)
        session.add(order)
        await session.flush()  # it has an id now
        *_, order.run = await chain(charge.s(order.id), ship.s(), thank.s()).aenqueue_in(session)
    return {"order": order.id, "run": order.run}


@web.get("/orders/{id}")
async def look(id: int, session: Annotated[AsyncSession, Depends(session)]) -> dict[str, Any]:
    order = await session.get(Order, id)
    if order is None:
        raise HTTPException(404, "no such order")
    return {"state": order.state, "work": await jobs.handle(order.run).astatus() if order.run else None}


web.mount("/jobs", jobs.asgi())
