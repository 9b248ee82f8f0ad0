import falcon


class Hello:
    def on_get(self, _request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.text = "hello from falcon"


app = falcon.App()
app.add_route("/", Hello())
