/** Which executions used most in a range of time; pure. */
import type { Execution } from '../../api/types';
import {
  RESOURCES,
  type Resource,
  sampledSeries,
  type UsageSeries,
  type UsageTrack,
} from '../../model/usage';

export interface TrackedExecution {
  execution: Execution;
  track: UsageTrack;
}

export interface UsageRow {
  execution: Execution;
  /** Over the whole range; `null` where it did not run. */
  series: UsageSeries;
  /** The average over the whole range. */
  average: Record<Resource, number>;
  /** The newest value; `null` where it is not known or has ended. */
  now: Record<Resource, number | null>;
}

/** The executions of the table. */
export const ROWS = 20;

export function resourceOf(text: string | null): Resource {
  return RESOURCES.find((resource) => resource === text) ?? 'cpu';
}

/** Those that were running at some time of a range, living and new ones first. */
export function overlapping(executions: readonly Execution[], from: number, limit: number): Execution[] {
  const ran = executions.filter((execution) => {
    if (execution.start_time === null) return false;
    return execution.end_time === null || Date.parse(execution.end_time) >= from;
  });
  const living = ran.filter((execution) => execution.end_time === null);
  const ended = ran.filter((execution) => execution.end_time !== null);
  return [...living, ...ended].slice(0, limit);
}

export function usageRow(
  { execution, track }: TrackedExecution,
  range: readonly [number, number],
  step: number,
): UsageRow {
  const series = sampledSeries(track, range, step);
  const each = <T>(value: (resource: Resource) => T) =>
    Object.fromEntries(RESOURCES.map((resource) => [resource, value(resource)])) as Record<Resource, T>;
  return {
    execution,
    series,
    average: each((resource) => averageOf(series.values[resource])),
    now: each((resource) => (track.living ? (series.values[resource].at(-1) ?? null) : null)),
  };
}

function averageOf(values: readonly (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / Math.max(1, values.length);
}

/** The ids of those that used most of a resource, the most first. */
export function ranked(rows: readonly UsageRow[], by: Resource): string[] {
  return [...rows]
    .sort((a, b) => b.average[by] - a.average[by] || (a.execution.uuid < b.execution.uuid ? 1 : -1))
    .slice(0, ROWS)
    .map((row) => row.execution.uuid);
}

/** An order that a person sees, with those that are new at its end and without those that are gone. */
export function keptOrder(shown: readonly string[], now: readonly string[]): string[] {
  const present = new Set(now);
  const kept = shown.filter((id) => present.has(id));
  const seen = new Set(kept);
  return [...kept, ...now.filter((id) => !seen.has(id))].slice(0, ROWS);
}
