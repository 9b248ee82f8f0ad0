/** What all executions used in a range of time: read once, then followed by what living ones use. */

import { untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { api, body } from '../../api/client';
import { ApiError } from '../../api/problem';
import { serverNow } from '../../api/server-clock';
import type { Execution, UsagePoint } from '../../api/types';
import { mergePoints, pointsSince, type UsageTrack } from '../../model/usage';
import { executions } from '../../state/executions.svelte';
import { forEachLimited } from '../../state/refresh';
import { usage } from '../../state/usage.svelte';
import { readUsage, USAGE_RANGES, type UsageRange } from '../../state/usage-history.svelte';
import { overlapping, type TrackedExecution } from './ranking';

/** Histories that are read: those of the executions that live or are newest. */
const EXECUTIONS = 150;
const CONCURRENT_READS = 6;
const REFRESH_MS = 30_000;

/** How far the points of the totals are apart, and into which intervals what is sampled now is put. */
const STEPS: Record<UsageRange, { stepMs: number; mergeS: number }> = {
  '5m': { stepMs: 2_000, mergeS: 1 },
  '1h': { stepMs: 10_000, mergeS: 10 },
  '24h': { stepMs: 300_000, mergeS: 300 },
};

export class TotalUsage {
  /** By full id, oldest point first. */
  #points = new SvelteMap<string, UsagePoint[]>();
  #loaded = $state(false);
  #pending = 0;
  #error = $state.raw<unknown>(null);
  #since = $state(0);
  readonly step: number;

  constructor(readonly range: UsageRange) {
    this.step = STEPS[range].stepMs;
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  get error(): unknown {
    return this.#error;
  }

  /** Since when the daemon has measured, in milliseconds: what was before is not known. */
  get knownFrom(): number {
    return this.#since;
  }

  /** Those with points in the range. `now`: the end of it. */
  tracks(now: number): TrackedExecution[] {
    const { mergeS } = STEPS[this.range];
    const from = now - USAGE_RANGES[this.range].ms;
    return overlapping(executions.list, from, EXECUTIONS).map((execution) => {
      const living = execution.end_time === null;
      const points = mergePoints(this.#points.get(execution.uuid) ?? [], usage.of(execution.uuid), mergeS);
      // The resolution of what was read; what is sampled now is finer.
      const resolutionS = USAGE_RANGES[this.range].resolutionS;
      const track: UsageTrack = { points: pointsSince(points, from), resolutionS, living };
      return { execution, track };
    });
  }

  /** Reads the histories until the returned function is called: at once, and those of living executions again. */
  start(): () => void {
    let ended = false;
    const isEnded = () => ended;
    void this.#readDaemon();
    $effect(() => {
      if (!executions.loaded) return;
      const missing = this.#wanted().filter(({ uuid }) => !untrack(() => this.#points.has(uuid)));
      void this.#read(missing, isEnded);
    });
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      const living = this.#wanted().filter((execution) => execution.end_time === null);
      void this.#read(living, isEnded);
    }, REFRESH_MS);
    return () => {
      ended = true;
      clearInterval(timer);
    };
  }

  #wanted(): Execution[] {
    return overlapping(executions.list, serverNow() - USAGE_RANGES[this.range].ms, EXECUTIONS);
  }

  async #readDaemon(): Promise<void> {
    try {
      this.#since = Date.parse((await body(api.GET('/api/v1/health', { params: {} }))).started_at);
    } catch {
      // Told by the connection.
    }
  }

  async #read(wanted: Execution[], isEnded: () => boolean): Promise<void> {
    const { ms, resolutionS } = USAGE_RANGES[this.range];
    const from = serverNow() - ms;
    this.#pending += 1;
    // So that each is asked for once.
    for (const { uuid } of wanted) if (!this.#points.has(uuid)) this.#points.set(uuid, []);
    await forEachLimited(wanted, CONCURRENT_READS, async ({ uuid }) => {
      if (isEnded()) return;
      const known = this.#points.get(uuid) ?? [];
      const last = known.at(-1);
      try {
        const later = await readUsage(uuid, this.range, last ? Date.parse(last.at) : from, false);
        this.#points.set(uuid, mergePoints(pointsSince(known, from), later, resolutionS));
        this.#error = null;
      } catch (caught) {
        // Of an execution that is gone, nothing is known.
        if (!(caught instanceof ApiError && caught.problem.status === 404)) this.#error = caught;
      }
    });
    this.#pending -= 1;
    if (!isEnded() && this.#pending === 0) this.#loaded = true;
  }
}
