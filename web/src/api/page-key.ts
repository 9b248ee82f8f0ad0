/**
 * The page's half of the credentials. The other half is a cookie that no script can read; cookies go to every
 * port of a host, this does not.
 */
import { BASE_PATH } from '../app/base-path';

/** Of each prefix: the storage is one for all daemons behind an address. */
const KEY = `ostler.page-key ${BASE_PATH}`;
/** The header that carries it. */
export const PAGE_KEY_HEADER = 'Ostler-Page-Key';

let pageKey = read();

function read(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function currentPageKey(): string | null {
  return pageKey;
}

export function storePageKey(key: string | null): void {
  pageKey = key;
  try {
    if (key === null) window.localStorage.removeItem(KEY);
    else window.localStorage.setItem(KEY, key);
  } catch {
    // A browser that stores nothing: it holds until the page is closed.
  }
}

/** The subprotocols of a WebSocket: ours, and the page key, which no header can carry there. */
export function webSocketProtocols(): string[] {
  return pageKey === null ? ['ostler'] : ['ostler', `ostler-page-key.${pageKey}`];
}
