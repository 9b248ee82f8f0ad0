/**
 * The address is the state of a page: what is shown is in its path and query, so that it can be shared, and the
 * back button works.
 */
import { BASE_PATH } from './base-path';
import { matchRoute, type Route } from './routes';

interface Location {
  route: Route;
  query: URLSearchParams;
}

function read(): Location {
  const { pathname, search } = window.location;
  const below = pathname.startsWith(BASE_PATH) ? pathname.slice(BASE_PATH.length) : pathname.slice(1);
  return { route: matchRoute(below), query: new URLSearchParams(search) };
}

let location = $state.raw<Location>(read());

/** The page that is shown, and its query. */
export const router = {
  get route(): Route {
    return location.route;
  },
  get query(): URLSearchParams {
    return location.query;
  },
};

/** The address of a page, for links: `href('p', id)` is `/p/<id>`. */
export function href(...parts: string[]): string {
  return BASE_PATH + parts.map(encodeURIComponent).join('/');
}

/** Shows another page. With `replace`, the present one is left out of the history. */
export function navigate(address: string, options: { replace?: boolean } = {}): void {
  if (options.replace) window.history.replaceState(null, '', address);
  else window.history.pushState(null, '', address);
  location = read();
}

/**
 * Changes parameters of the query; `null`, `undefined` and the empty string remove one, a list gives it several
 * times. While a person types, the entry in the history is replaced; a click or Enter adds one (`push`).
 */
export function setQuery(
  changes: Record<string, string | readonly string[] | null | undefined>,
  options: { push?: boolean } = {},
): void {
  const query = new URLSearchParams(location.query);
  for (const [name, value] of Object.entries(changes)) {
    const values = (typeof value === 'string' ? [value] : (value ?? [])).filter(Boolean);
    if (values.join('\n') === query.getAll(name).join('\n')) continue;
    query.delete(name);
    for (const one of values) query.append(name, one);
  }
  const text = query.toString();
  if (text === location.query.toString()) return;
  const address = window.location.pathname + (text && `?${text}`);
  navigate(address, { replace: !options.push });
}

/** Follows the back button, and links to pages of ours. Returns what ends that. */
export function startRouter(): () => void {
  const update = () => {
    location = read();
  };
  window.addEventListener('popstate', update);
  document.addEventListener('click', followLink);
  return () => {
    window.removeEventListener('popstate', update);
    document.removeEventListener('click', followLink);
  };
}

function followLink(event: MouseEvent): void {
  const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (event.defaultPrevented || event.button !== 0 || modified) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link || link.target || link.hasAttribute('download') || link.origin !== window.location.origin) return;
  if (!link.pathname.startsWith(BASE_PATH) || link.pathname.startsWith(`${BASE_PATH}api/`)) return;
  event.preventDefault();
  navigate(link.pathname + link.search + link.hash);
}
