"""Does things on time until it is stopped, as a crontab would, but knows what happened."""

from rota import Rota, cron, every

app = Rota("sqlite:///clock.db")


@app.job
def tick(at: str) -> None:
    print("tick", at, flush=True)


@app.job(timeout="10m")
def report() -> None:
    print("the report of the day", flush=True)


app.schedule("tick", tick, every("1s"), payload={"at": "{plan_time}"})
app.schedule("report", report, cron("0 9 * * 1-5", tz="Europe/Berlin"))

if __name__ == "__main__":
    app.run()
