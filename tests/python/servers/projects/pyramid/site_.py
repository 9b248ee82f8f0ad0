from pyramid.config import Configurator
from pyramid.response import Response


def main(_settings, **_options):
    with Configurator() as config:
        config.add_route("index", "/")
        config.add_view(lambda _request: Response("hello from pyramid"), route_name="index")
    return config.make_wsgi_app()
