import os

from bottle import route, run


@route("/")
def index():
    return "hello from bottle"


run(host="127.0.0.1", port=int(os.environ.get("PORT", "8080")))
