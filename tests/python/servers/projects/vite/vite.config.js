// The cache belongs to the project: its node_modules are shared with others.
export default { cacheDir: ".cache" };
