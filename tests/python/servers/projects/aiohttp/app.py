from aiohttp import web


async def index(_request):
    return web.Response(text="hello from aiohttp")


def create(_argv=None):
    app = web.Application()
    app.router.add_get("/", index)
    return app
