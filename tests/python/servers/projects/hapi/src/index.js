const Hapi = require("@hapi/hapi");

const start = async () => {
  const server = Hapi.server({ port: process.env.PORT || 3000, host: "localhost" });
  server.route({ method: "GET", path: "/", handler: () => "hello from hapi" });
  await server.start();
  console.log("Server running on %s", server.info.uri);
};

process.on("unhandledRejection", (error) => {
  console.error(error);
  process.exit(1);
});

start();
