module.exports = { mode: "development", entry: "./index.js", devServer: { static: "." } };
