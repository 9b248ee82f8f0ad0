/**
 * The path that everything is served under, with a slash at its end: `/`, or that of `http.url_prefix`.
 * Built files are in `<prefix>/assets/`, so that the address of this one tells it.
 */
export const BASE_PATH: string = import.meta.env.DEV ? '/' : new URL('..', import.meta.url).pathname;

/** The address of a path of the server, such as `api/v1/version`. */
export function serverPath(path: string): string {
  return BASE_PATH + path.replace(/^\//, '');
}
