"""Put your own here."""

from rota import Rota, every

app = Rota()


@app.job
def hello(name: str = "world") -> str:
    return f"hello, {name}"


app.schedule("hello", hello, every("1m"))
