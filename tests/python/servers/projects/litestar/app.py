from litestar import Litestar, get


@get("/", sync_to_thread=False)
def index() -> str:
    return "hello from litestar"


app = Litestar([index])
