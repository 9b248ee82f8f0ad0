/** The figures above the list; pure. */
import type { UsagePoint } from '../../api/types';
import { toneOf } from '../../model/display-state';
import type { Row } from './rows';

export const MINUTE_MS = 60_000;
/** Minutes of the bars. */
export const BARS = 60;

export interface Minute {
  started: number;
  failed: number;
}

export interface Figures {
  active: number;
  /** Failed within the last hour. */
  failed: number;
  /** Started within the last hour. */
  started: number;
  /** The last hour by minutes, the oldest first. */
  minutes: Minute[];
}

/** Counts rows. `minute`: the present minute since 1970, the last of the bars. */
export function figuresOf(rows: readonly Row[], minute: number): Figures {
  const minutes = Array.from({ length: BARS }, (): Minute => ({ started: 0, failed: 0 }));
  const at = (ms: number) => minutes[Math.floor(ms / MINUTE_MS) - minute + BARS - 1];
  const figures: Figures = { active: 0, failed: 0, started: 0, minutes };
  for (const { startedAt, endedAt, state, tab } of rows) {
    if (tab === 'active') figures.active += 1;
    const start = at(startedAt);
    if (start) {
      start.started += 1;
      figures.started += 1;
    }
    const end = endedAt !== null && toneOf(state) === 'failed' ? at(endedAt) : undefined;
    if (end) {
      end.failed += 1;
      figures.failed += 1;
    }
  }
  return figures;
}

/** Pixels of a mark, at least. */
const MARK = 4;

/** The heights of a bar and of its mark, in pixels: the mark stands on the bar, and is seen however few failed. */
export function barHeights(
  minute: Minute,
  most: number,
  height: number,
): { started: number; failed: number } {
  const scale = (height - MARK - 1) / Math.max(1, most);
  const started = minute.started === 0 ? 1 : Math.max(3, Math.round(minute.started * scale));
  if (minute.failed === 0) return { started, failed: 0 };
  const failed = Math.max(MARK, Math.round(minute.failed * scale));
  return { started, failed: Math.min(failed, height - 1 - started) };
}

/** What all living executions use now. */
export function totalUse(samples: ReadonlyMap<string, UsagePoint[]>): { cores: number; memory: number } {
  let percent = 0;
  let memory = 0;
  for (const points of samples.values()) {
    const last = points.at(-1);
    percent += last?.cpu_percent ?? 0;
    memory += last?.memory_bytes ?? 0;
  }
  return { cores: percent / 100, memory };
}
