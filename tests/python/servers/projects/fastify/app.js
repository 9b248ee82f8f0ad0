import Fastify from "fastify";

const app = Fastify({ logger: true });
app.get("/", async () => "hello from fastify");
try {
  await app.listen({ port: Number(process.env.PORT || 3000) });
} catch (error) {
  app.log.error(error);
  process.exit(1);
}
