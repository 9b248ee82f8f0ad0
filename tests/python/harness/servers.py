"""The third-party servers that the tests start, as a developer starts them."""

import dataclasses

#: The first packet of an MQTT client, and the beginning of the response.
MQTT_CONNECT, MQTT_CONNACK = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a", b"\x20\x02"
#: The SSLRequest message of a PostgreSQL client, and its one-letter response.
POSTGRES_SSL, POSTGRES_NO = b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"N"


@dataclasses.dataclass(frozen=True)
class Server:
    """One server and how it is started."""

    #: The name of the test.
    name: str
    #: The entry of the detection table that matches it.
    entry: str
    #: The directory of its project.
    project: str
    #: The command line; `{port}` is replaced by the port and `{next}` by the next one.
    command: str
    #: The set of packages that it belongs to.
    tier: str = "full"
    #: Text in the first response.
    response: bytes = b"hello"
    #: Uses another port if the given one is in use.
    takes_next_port: bool = False
    #: Listens on IPv6 only if the port is in use on IPv4.
    shares_port: bool = False
    #: Starts a new worker process if one dies.
    restarts_workers: bool = False
    #: The death of the serving process is not visible: another process keeps the port open.
    keeps_port: bool = False
    #: Its launcher exits with 0 if the serving process dies.
    exits_zero: bool = False
    #: Speaks HTTP.
    http: bool = True
    #: What the test sends to a server without HTTP; empty for one that sends first.
    request: bytes = b""
    #: The path that the test requests, relative to the URL.
    path: str = ""
    #: Refuses to run as root.
    refuses_root: bool = False

    def __str__(self):
        return self.name


QUICK = [
    Server("http.server", "http.server", "static", "python3 -m http.server {port}", "quick"),
    Server("flask", "flask", "flask", "flask run --port {port}", "quick"),
    Server("uvicorn", "uvicorn", "asgi", "uvicorn app:app --port {port}", "quick"),
    Server("vite", "vite", "vite", "npm run dev -- --port {port}", "quick", b"/main.js", takes_next_port=True),
    Server("express", "node-server", "express", "PORT={port} npm start", "quick"),
    Server("waitress", "hypercorn", "falcon", "waitress-serve --port {port} app:app", "quick"),
    Server("bottle", "python-server", "bottle", "PORT={port} python app.py", "quick"),
    Server("aiohttp", "aiohttp", "aiohttp", "python -m aiohttp.web -H 127.0.0.1 -P {port} app:create", "quick"),
    Server("tornado", "python-server", "tornado", "python main.py {port}", "quick"),
    Server("hypercorn", "hypercorn", "asgi", "hypercorn app:app -b 127.0.0.1:{port}", "quick", keeps_port=True),
    Server("koa", "node-server", "koa", "PORT={port} npm start", "quick"),
    Server("fastify", "node-watch", "fastify", "PORT={port} npm run dev", "quick", keeps_port=True),
    Server("hono", "node-server", "hono", "PORT={port} node index.mjs", "quick"),
    Server("sirv", "static-server", "static", "npx sirv . --port {port}", "quick", takes_next_port=True),
    Server("vite-preview", "vite-preview", "vite-preview", "npm run preview -- --port {port}", "quick", takes_next_port=True),
]
PYTHON = [
    Server("django", "django", "django", "python manage.py runserver {port}"),
    Server("fastapi", "fastapi", "fastapi", "fastapi dev --port {port}", keeps_port=True),
    Server("flask-debug", "flask", "flask", "flask --app app run --debug --port {port}", "quick"),
    Server("uvicorn-reload", "uvicorn", "asgi", "uvicorn app:app --reload --port {port}", "quick", keeps_port=True),
    Server("uvicorn-workers", "uvicorn", "asgi", "uvicorn app:app --workers 2 --port {port}", "quick", restarts_workers=True),
    Server("gunicorn", "gunicorn", "wsgi", "gunicorn app:app -b 127.0.0.1:{port}", restarts_workers=True),
    Server("gunicorn-reload", "gunicorn", "wsgi", "gunicorn --reload -b 127.0.0.1:{port} app:app", restarts_workers=True),
    Server("mkdocs", "mkdocs", "mkdocs", "mkdocs serve -a 127.0.0.1:{port}"),
    Server("streamlit", "streamlit", "streamlit",
           "streamlit run app.py --server.port {port} --server.headless true", response=b"Streamlit"),
    Server("jupyter", "jupyter", "notebooks", "jupyter lab --no-browser --allow-root --port {port}",
           response=b"upyter", takes_next_port=True),
    Server("litestar", "litestar", "litestar", "litestar run --port {port}"),
    Server("sanic", "sanic", "sanic", "sanic server:app --host 127.0.0.1 --port {port}", restarts_workers=True),
    Server("quart", "litestar", "quart", "quart --app app run --port {port}"),
    Server("cherrypy", "python-server", "cherrypy", "PORT={port} python main.py"),
    Server("granian", "hypercorn", "asgi", "granian --interface asgi --port {port} app:app", keeps_port=True),
    Server("daphne", "hypercorn", "asgi", "daphne -p {port} app:app"),
    Server("datasette", "litestar", "static", "datasette serve --port {port}", response=b"Datasette"),
    Server("sphinx-autobuild", "sphinx-autobuild", "sphinx", "sphinx-autobuild --port {port} docs _build"),
    Server("wsgidav", "litestar", "static",
           "wsgidav --host 127.0.0.1 --port {port} --root . --auth anonymous", response=b"index.html"),
    Server("livereload", "livereload", "static", "livereload -p {port}"),
    Server("pelican", "livereload", "pelican", "pelican --listen -p {port}"),
    Server("twisted", "litestar", "static", "twistd -n web --listen tcp:{port} --path ."),
    Server("pypi-server", "litestar", "static", "pypi-server run -p {port} .", response=b"pypiserver"),
    Server("radicale", "litestar", "static",
           "radicale --server-hosts 127.0.0.1:{port} --auth-type none --storage-filesystem-folder data",
           response=b"Radicale"),
    Server("pyramid", "litestar", "pyramid", "PYTHONPATH=. pserve development.ini http_port={port}"),
    Server("marimo", "litestar", "marimo", "marimo run notebook.py --headless --port {port}",
           response=b"marimo"),
    Server("bokeh", "litestar", "bokeh", "bokeh serve app.py --port {port}", response=b"hello", path="app"),
    Server("pyftpdlib", "http.server", "static", "python -m pyftpdlib -p {port}", response=b"220", http=False),
    Server("aiosmtpd", "http.server", "static", "python -m aiosmtpd -n -l 127.0.0.1:{port}", response=b"220",
           http=False),
]
NODE = [
    Server("next", "next", "next", "npm run dev -- -p {port}", exits_zero=True),
    Server("webpack", "webpack-dev-server", "webpack", "npx webpack serve --port {port}", response=b"/main.js"),
    Server("nodemon", "nodemon", "express", "PORT={port} npx nodemon server.js"),
    Server("tsx", "tsx-watch", "tsx", "PORT={port} npm run dev"),
    Server("json-server", "json-server", "json-server", "npx json-server --watch db.json --port {port}",
           response=b"json"),
    Server("http-server", "http-server", "static", "npx http-server -p {port}"),
    Server("serve", "serve", "static", "npx serve -l {port}", takes_next_port=True),
    Server("live-server", "live-server", "static", "npx live-server --no-browser --port={port}", takes_next_port=True),
    Server("browser-sync", "browser-sync", "static",
           "npx browser-sync start --server --no-open --port {port}", takes_next_port=True),
    Server("astro", "astro", "astro", "npm run dev -- --port {port}", takes_next_port=True),
    Server("eleventy", "eleventy", "eleventy", "npm start -- --port={port}", takes_next_port=True),
    Server("parcel", "parcel", "parcel", "npm start -- --port {port}"),
    Server("vitepress", "vitepress", "vitepress", "npm run docs:dev -- --port {port}",
           response=b"vitepress/dist/client", takes_next_port=True),
    Server("rsbuild", "rsbuild", "rsbuild", "npm run dev -- --port {port}", takes_next_port=True),
    Server("web-dev-server", "preact-cli", "wds", "npm start -- --port {port}"),
    Server("hapi", "node-server", "hapi", "PORT={port} npm start"),
    Server("local-web-server", "static-server", "static", "npx ws --port {port}"),
]
SYSTEM = [
    Server("php", "php", "php", "php -S localhost:{port}"),
    Server("nginx", "nginx", "nginx", "nginx -p . -c nginx.conf", restarts_workers=True),
    Server("redis", "redis", "redis", "redis-server redis.conf --port {port}", response=b"+PONG", http=False,
           request=b"PING\r\n"),
    Server("caddy", "caddy", "caddy", "caddy run --config Caddyfile"),
    Server("caddy-files", "caddy", "static", "caddy file-server --listen :{port}"),
    Server("lighttpd", "web-server", "lighttpd", "lighttpd -D -m $DEBIAN/lib/lighttpd -f lighttpd.conf"),
    Server("apache", "web-server", "apache", "apache2 -d . -f httpd.conf -DFOREGROUND", restarts_workers=True),
    Server("haproxy", "web-server", "haproxy", "haproxy -f haproxy.cfg"),
    Server("webfs", "web-server", "static", "webfsd -F -p {port} -f index.html"),
    Server("busybox", "web-server", "static", "busybox httpd -f -p {port}"),
    Server("hugo", "hugo", "hugo", "hugo server --port {port}"),
    Server("puma", "puma", "rack", "puma -p {port}"),
    Server("thin", "unicorn", "rack", "thin start -p {port}"),
    Server("rackup", "rackup", "rack", "rackup -p {port}"),
    Server("sinatra", "sinatra", "sinatra", "ruby app.rb -p {port}"),
    Server("ruby-httpd", "ruby-httpd", "static", "ruby -run -e httpd . -p {port}", shares_port=True),
    Server("mojolicious", "perl", "mojolicious", "morbo -l http://127.0.0.1:{port} app.pl", keeps_port=True),
    Server("memcached", "memcached", "static", "memcached -u root -p {port}", response=b"VERSION", http=False,
           request=b"version\r\n", shares_port=True),
    Server("mosquitto", "daemon", "static", "mosquitto -p {port}", response=MQTT_CONNACK, http=False,
           request=MQTT_CONNECT, shares_port=True),
    Server("postgres", "postgres", "static",
           "initdb -D data >initdb.log && exec postgres -D data -k . -p {port}", response=POSTGRES_NO, http=False,
           request=POSTGRES_SSL, refuses_root=True),
    Server("dropbear", "daemon", "static",
           "dropbearkey -t ed25519 -f host.key && dropbear -F -E -r host.key -p 127.0.0.1:{port}",
           response=b"SSH-2.0", http=False),
    Server("nats", "daemon", "static", "nats-server -p {port}", response=b"INFO", http=False),
    Server("etcd", "daemon", "static",
           "etcd --listen-client-urls http://127.0.0.1:{port} --advertise-client-urls http://127.0.0.1:{port}"
           " --listen-peer-urls http://127.0.0.1:{next}", response=b"etcdserver", path="version"),
    Server("beanstalkd", "daemon", "static", "beanstalkd -l 127.0.0.1 -p {port}", response=b"OK", http=False,
           request=b"stats\r\n"),
    Server("ngircd", "daemon", "ngircd", "ngircd -n -f ngircd.conf", response=b"irc.example.net", http=False,
           request=b"NICK a\r\nUSER a 0 * :a\r\n"),
]
FULL = [*PYTHON, *NODE, *SYSTEM]
