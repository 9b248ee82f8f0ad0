from sanic import Sanic, text

app = Sanic("hello")


@app.get("/")
async def index(_request):
    return text("hello from sanic")
