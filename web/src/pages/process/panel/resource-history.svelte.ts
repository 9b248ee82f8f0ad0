/** What a process used over its life, or the last part of it; followed while it is shown. */

import { api, body } from '../../../api/client';
import { serverNow } from '../../../api/server-clock';
import type { UsagePoint } from '../../../api/types';
import { mergePoints, pointsSince, seriesOf, type UsageSeries } from '../../../model/usage';

/** The last part of the life that is shown, in milliseconds; `null` for all of it. */
export const SPANS = { '5m': 300_000, '1h': 3_600_000, all: null } as const;
export type Span = keyof typeof SPANS;

const POLL_MS = 2_000;
const LIMIT = 1_000;

export class ResourceHistory {
  points = $state.raw<UsagePoint[]>([]);
  loaded = $state(false);
  error = $state.raw<unknown>(null);
  #resolution = 0;
  readonly series = $derived<UsageSeries>(
    seriesOf({ points: this.points, resolutionS: this.#resolution || 10, living: true }),
  );

  /**
   * @param startedAt when the process was started, in milliseconds
   * @param endedAt when it ended; `null` while it lives
   */
  constructor(
    private readonly id: string,
    private readonly span: Span,
    private readonly startedAt: number,
    private readonly endedAt: number | null,
  ) {}

  /** Follows it until the returned function is called. */
  follow(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let hasEnded = false;
    const next = async () => {
      if (document.visibilityState === 'visible') await this.#read();
      const isMore = this.endedAt === null || !this.loaded;
      if (!hasEnded && isMore) timer = setTimeout(() => void next(), POLL_MS);
    };
    void next();
    return () => {
      hasEnded = true;
      clearTimeout(timer);
    };
  }

  /** The first time that is shown. */
  get #from(): number {
    const length = SPANS[this.span];
    return length === null
      ? this.startedAt
      : Math.max(this.startedAt, (this.endedAt ?? serverNow()) - length);
  }

  async #read(): Promise<void> {
    const from = this.#from;
    try {
      let last = this.points.at(-1)?.at;
      for (;;) {
        const query = {
          since: last ?? new Date(from - 1).toISOString(),
          limit: LIMIT,
          watch: this.endedAt === null,
          ...(this.#resolution === 0 ? {} : { resolution_s: String(this.#resolution) as '1' | '10' | '300' }),
        };
        const params = { path: { id: this.id }, query };
        const page = await body(api.GET('/api/v1/executions/{id}/resources/history', { params }));
        this.#resolution = page.resolution_s;
        this.points = pointsSince(mergePoints(this.points, page.points, page.resolution_s), from);
        last = page.next;
        if (!page.more) break;
      }
      this.loaded = true;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
  }
}
