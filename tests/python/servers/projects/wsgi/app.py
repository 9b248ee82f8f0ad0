"""The smallest WSGI application."""


def app(_environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello from wsgi"]
