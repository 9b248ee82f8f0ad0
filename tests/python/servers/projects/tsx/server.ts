import { createServer } from "node:http";

const port: number = Number(process.env.PORT ?? 3000);
createServer((_request, response) => response.end("hello from tsx")).listen(port, () => {
  console.log(`listening on http://localhost:${port}`);
});
