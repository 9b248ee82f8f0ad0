/** What executions use over time, as series for plots; pure. */
import type { UsagePoint } from '../api/types';

/** The resources that are plotted. Bytes of storage and network are per second. */
export const RESOURCES = ['cpu', 'memory', 'disk', 'network'] as const;
export type Resource = (typeof RESOURCES)[number];

export interface UsageSeries {
  /** Milliseconds, ascending. */
  times: number[];
  values: Record<Resource, (number | null)[]>;
}

/** The points of one execution, and how many seconds one of them stands for. */
export interface UsageTrack {
  points: readonly UsagePoint[];
  resolutionS: number;
  /** Whether its last value still holds. */
  living: boolean;
}

/** An interval without a sample that is so many times longer than usual is a gap. */
const GAP = 3;
/** The shortest time for which a value holds, in milliseconds: twice the 10 s after which all are sampled. */
const HOLD_MS = 21_000;

const times = new WeakMap<UsagePoint, number>();

/** The time of a point, in milliseconds; parsed once. */
export function timeOf(point: UsagePoint): number {
  let time = times.get(point);
  if (time === undefined) {
    time = Date.parse(point.at);
    times.set(point, time);
  }
  return time;
}

/**
 * Points with later ones added. A point of an interval that was not over comes again, with a later time: it takes
 * the place of the earlier one.
 */
export function mergePoints(
  points: readonly UsagePoint[],
  later: readonly UsagePoint[],
  resolutionS: number,
): UsagePoint[] {
  const merged = [...points];
  const interval = (point: UsagePoint) => Math.floor(timeOf(point) / (resolutionS * 1000));
  for (const point of later) {
    const last = merged.at(-1);
    if (last && timeOf(last) > timeOf(point)) continue;
    if (last && interval(last) === interval(point)) merged.pop();
    merged.push(point);
  }
  return merged;
}

/** Without what is older than a time. */
export function pointsSince(points: readonly UsagePoint[], from: number): UsagePoint[] {
  return points.filter((point) => timeOf(point) >= from);
}

/** The value of each resource in the interval that ends with a point. */
function valuesAt(before: UsagePoint | undefined, point: UsagePoint): Record<Resource, number | null> {
  return {
    cpu: point.cpu_percent ?? null,
    memory: point.memory_bytes,
    disk: rate(before, point, (it) => sum(it.read_bytes, it.written_bytes)),
    network: rate(before, point, (it) => sum(it.received_bytes, it.sent_bytes)),
  };
}

function sum(a: number | undefined, b: number | undefined): number | null {
  return a === undefined && b === undefined ? null : (a ?? 0) + (b ?? 0);
}

/** How fast a counter grew; `null` where it is not known, or began anew. */
function rate(
  before: UsagePoint | undefined,
  point: UsagePoint,
  counter: (point: UsagePoint) => number | null,
): number | null {
  if (!before) return null;
  const [from, to] = [counter(before), counter(point)];
  const seconds = (timeOf(point) - timeOf(before)) / 1000;
  if (from === null || to === null || to < from || seconds <= 0) return null;
  return (to - from) / seconds;
}

/** The series of one execution. Between points that are far apart, there is a gap. */
export function seriesOf(track: UsageTrack): UsageSeries {
  const series: UsageSeries = { times: [], values: { cpu: [], memory: [], disk: [], network: [] } };
  const add = (at: number, values: Record<Resource, number | null> | null) => {
    series.times.push(at);
    for (const resource of RESOURCES) series.values[resource].push(values?.[resource] ?? null);
  };
  for (const [index, point] of track.points.entries()) {
    const before = track.points[index - 1];
    const at = timeOf(point);
    if (before && at - timeOf(before) > spacing(track) * GAP) add(timeOf(before) + 1, null);
    add(at, valuesAt(before, point));
  }
  return series;
}

function spacing(track: UsageTrack): number {
  return Math.max(HOLD_MS, track.resolutionS * 1000);
}

/** The value at each of ascending times: that of the interval it lies in; `null` outside of all. */
function sampleAt(track: UsageTrack, times: readonly number[]): (Record<Resource, number | null> | null)[] {
  const { points } = track;
  let next = 0;
  return times.map((time) => {
    let point = points[next];
    while (point && timeOf(point) < time) {
      next += 1;
      point = points[next];
    }
    const before = points[next - 1];
    // The first point tells of no more than its own interval.
    const reach = before ? spacing(track) : track.resolutionS * 1000;
    if (point && timeOf(point) - time <= reach) return valuesAt(before, point);
    if (!point && before && track.living && time - timeOf(before) <= spacing(track)) {
      return valuesAt(points[next - 2], before);
    }
    return null;
  });
}

/** The values of one execution at times `step` milliseconds apart; nothing where it did not run. */
export function sampledSeries(
  track: UsageTrack,
  range: readonly [number, number],
  step: number,
): UsageSeries {
  const times = timesOf(range, step);
  const sampled = sampleAt(track, times);
  const values = Object.fromEntries(
    RESOURCES.map((resource) => [resource, sampled.map((at) => at?.[resource] ?? null)]),
  ) as UsageSeries['values'];
  return { times, values };
}

function timesOf([from, to]: readonly [number, number], step: number): number[] {
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, i) => first + i * step);
}

/** What all executions used together, at times `step` milliseconds apart; nothing is known before `knownFrom`. */
export function totalSeries(
  tracks: readonly UsageTrack[],
  range: readonly [number, number],
  step: number,
  knownFrom: number,
): UsageSeries {
  const times = timesOf(range, step);
  const sampled = tracks.map((track) => sampleAt(track, times));
  const values = Object.fromEntries(
    RESOURCES.map((resource) => [
      resource,
      times.map((time, at) => total(sampled, resource, at, time >= knownFrom)),
    ]),
  ) as UsageSeries['values'];
  return { times, values };
}

type Sampled = (Record<Resource, number | null> | null)[][];

/** A sum; `null` where executions ran and the value is known of none of them. */
function total(sampled: Sampled, resource: Resource, at: number, known: boolean): number | null {
  if (!known) return null;
  let result = 0;
  let ran = false;
  let measured = false;
  for (const track of sampled) {
    const values = track[at];
    if (!values) continue;
    ran = true;
    const value = values[resource];
    if (value === null) continue;
    measured = true;
    result += value;
  }
  return ran && !measured ? null : result;
}
