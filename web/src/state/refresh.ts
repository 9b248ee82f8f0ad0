/** Calls that are made once for many reasons. */

/**
 * Runs `action` soon after it was asked for, once for all that ask meanwhile, and never twice at a time. Errors are the action's own.
 */
export function coalesced(action: () => Promise<void>, delayMs: number): () => void {
  let scheduled = false;
  let running = false;
  let again = false;
  const run = async () => {
    scheduled = false;
    running = true;
    try {
      await action();
    } finally {
      running = false;
      if (again) {
        again = false;
        request();
      }
    }
  };
  const request = () => {
    if (running) again = true;
    else if (!scheduled) {
      scheduled = true;
      setTimeout(() => void run(), delayMs);
    }
  };
  return request;
}

/** Runs `action` for each item, at most `limit` at a time. */
export async function forEachLimited<T>(
  items: T[],
  limit: number,
  action: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const workers = Array.from({ length: Math.min(limit, items.length) }, async () => {
    for (const item of queue) await action(item);
  });
  await Promise.all(workers);
}

/** Calls `action` again and again while the page is visible, until the returned function is called. */
export function whileVisible(action: () => void, everyMs: number): () => void {
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible') action();
  }, everyMs);
  return () => clearInterval(timer);
}
