import asyncio
import sys

from tornado.web import Application, RequestHandler


class Index(RequestHandler):
    def get(self):
        self.write("hello from tornado")


async def main():
    Application([("/", Index)]).listen(int(sys.argv[1]))
    await asyncio.Event().wait()


asyncio.run(main())
