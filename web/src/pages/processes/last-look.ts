/** When the person last looked at the list, in this browser. */
import { serverNow } from '../../api/server-clock';

const KEY = 'ostler.processes-looked-at';
/** Who never looked before is shown the failures of so long, in milliseconds. */
const FIRST_LOOK_MS = 3_600_000;

export function lastLook(): number {
  try {
    const stored = Number(window.localStorage.getItem(KEY));
    if (stored > 0) return stored;
  } catch {
    // A browser that stores nothing: each look is the first.
  }
  return serverNow() - FIRST_LOOK_MS;
}

/** The person looks until the returned function is called, or the window is closed. */
export function keepLook(): () => void {
  const store = () => {
    try {
      window.localStorage.setItem(KEY, String(serverNow()));
    } catch {
      // As above.
    }
  };
  window.addEventListener('pagehide', store);
  return () => {
    window.removeEventListener('pagehide', store);
    store();
  };
}
