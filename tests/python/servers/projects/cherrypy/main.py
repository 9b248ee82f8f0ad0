import os

import cherrypy


class Root:
    @cherrypy.expose
    def index(self):
        return "hello from cherrypy"


cherrypy.config.update({"server.socket_port": int(os.environ.get("PORT", "8080"))})
cherrypy.quickstart(Root())
