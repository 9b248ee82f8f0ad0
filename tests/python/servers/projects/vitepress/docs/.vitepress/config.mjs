export default { title: "hello", cacheDir: ".cache" };
