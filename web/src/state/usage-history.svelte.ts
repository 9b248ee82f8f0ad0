/** What one execution used over a range of time, followed while it is shown. */

import { api, body } from '../api/client';
import { serverNow } from '../api/server-clock';
import type { UsagePoint } from '../api/types';
import { mergePoints, pointsSince, type UsageTrack } from '../model/usage';

/** The ranges that plots have, each with the seconds that a point of it stands for. */
export const USAGE_RANGES = {
  '5m': { ms: 300_000, resolutionS: 10 },
  '1h': { ms: 3_600_000, resolutionS: 10 },
  '24h': { ms: 86_400_000, resolutionS: 300 },
} as const;
export type UsageRange = keyof typeof USAGE_RANGES;

export function usageRangeOf(text: string | null): UsageRange {
  return text !== null && Object.hasOwn(USAGE_RANGES, text) ? (text as UsageRange) : '5m';
}

const POLL_MS = 2_000;

/** Reads the points of an execution from `since` on. */
export async function readUsage(
  id: string,
  range: UsageRange,
  since: number,
  watch: boolean,
): Promise<UsagePoint[]> {
  const query = {
    since: new Date(since).toISOString(),
    resolution_s: range === '24h' ? ('300' as const) : ('10' as const),
    watch,
  };
  const params = { path: { id }, query };
  return (await body(api.GET('/api/v1/executions/{id}/resources/history', { params }))).points;
}

export class UsageHistory {
  #points = $state.raw<UsagePoint[]>([]);
  #loaded = $state(false);
  #error = $state.raw<unknown>(null);
  #living = $state(true);

  constructor(
    readonly id: string,
    readonly range: UsageRange,
  ) {}

  get track(): UsageTrack {
    return { points: this.#points, resolutionS: USAGE_RANGES[this.range].resolutionS, living: this.#living };
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  get error(): unknown {
    return this.#error;
  }

  /** Follows it until the returned function is called. `isLiving`: whether more is to be expected. */
  follow(isLiving: () => boolean): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    const next = async () => {
      if (document.visibilityState === 'visible') await this.#read(isLiving());
      if (!ended && (isLiving() || !this.#loaded || this.#error !== null))
        timer = setTimeout(() => void next(), POLL_MS);
    };
    void next();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }

  async #read(living: boolean): Promise<void> {
    const { ms, resolutionS } = USAGE_RANGES[this.range];
    const from = serverNow() - ms;
    const last = this.#points.at(-1);
    try {
      const since = last ? Math.max(from, Date.parse(last.at)) : from;
      const later = await readUsage(this.id, this.range, since, living);
      this.#points = pointsSince(mergePoints(this.#points, later, resolutionS), from);
      this.#living = living;
      this.#loaded = true;
      this.#error = null;
    } catch (caught) {
      this.#error = caught;
    }
  }
}
