const express = require("express");

const app = express();
const port = process.env.PORT || 3000;
app.get("/", (_request, response) => response.send("hello from express"));
// Express 5 hands what goes wrong with listening to the callback.
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Example app listening on port ${port}`);
});
