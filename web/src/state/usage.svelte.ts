/** What living executions use, sampled while a page shows it. */
import { api, body } from '../api/client';
import type { UsagePoint } from '../api/types';

const POLL_MS = 2_000;
/** Points of each that are kept, for the small plots. */
const POINTS = 60;

let watchers = 0;
let timer: ReturnType<typeof setInterval> | null = null;
let byId = $state.raw(new Map<string, UsagePoint[]>());

export const usage = {
  /** The newest samples of an execution (by its full id), oldest first. */
  of(uuid: string): UsagePoint[] {
    return byId.get(uuid) ?? [];
  },
  get all(): Map<string, UsagePoint[]> {
    return byId;
  },
};

/** Samples until the returned function is called. */
export function watchUsage(): () => void {
  watchers += 1;
  timer ??= setInterval(() => void poll(), POLL_MS);
  void poll();
  return () => {
    watchers -= 1;
    if (watchers > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
}

async function poll(): Promise<void> {
  if (document.visibilityState !== 'visible') return;
  try {
    const query = { limit: 1_000, watch: true };
    const answer = await body(api.GET('/api/v1/resources', { params: { query } }));
    const next = new Map<string, UsagePoint[]>();
    for (const { uuid, usage: point } of answer.executions) {
      const before = byId.get(uuid) ?? [];
      const isNew = point !== undefined && before.at(-1)?.at !== point.at;
      next.set(uuid, isNew ? [...before, point].slice(-POINTS) : before);
    }
    byId = next;
  } catch {
    // The connection's own state tells that the daemon is away; the next poll tries again.
  }
}
