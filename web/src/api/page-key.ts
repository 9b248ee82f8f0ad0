/**
 * The page's half of the credentials. The other half is a cookie that no script can read; cookies go to every
 * port of a host, this does not.
 */
import { BASE_PATH } from '../app/base-path';

/** Of each prefix: the storage is one for all daemons behind an address. */
const KEY = `ostler.page-key ${BASE_PATH}`;
/** The header that carries it. */
export const PAGE_KEY_HEADER = 'Ostler-Page-Key';

let pageKey = read() ?? null;

/** `undefined`: this browser stores nothing. */
function read(): string | null | undefined {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return undefined;
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

/**
 * Calls `listener` when another window of this browser signed in or out: the key is then the one of that window.
 * Returns what ends that.
 */
export function onOtherWindow(listener: (key: string | null) => void): () => void {
  const look = () => {
    const stored = read();
    if (stored === undefined || stored === pageKey) return;
    pageKey = stored;
    listener(stored);
  };
  window.addEventListener('storage', look);
  // A page that comes back from the history was told nothing meanwhile.
  window.addEventListener('pageshow', look);
  return () => {
    window.removeEventListener('storage', look);
    window.removeEventListener('pageshow', look);
  };
}

/** The subprotocols of a WebSocket: ours, and the page key, which no header can carry there. */
export function webSocketProtocols(): string[] {
  return pageKey === null ? ['ostler'] : ['ostler', `ostler-page-key.${pageKey}`];
}
