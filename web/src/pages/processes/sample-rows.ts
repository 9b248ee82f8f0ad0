/** Executions for tests. */
import type { Execution } from '../../api/types';
import { type Row, rowOf } from './rows';

/** 12:00 of a day: what the times of the samples are relative to. */
export const NOON = Date.parse('2026-11-24T12:00:00Z');

/** A full id that sorts by its number. */
export function uuidOf(number: number): string {
  return `01a20e92-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

export function execution(number: number, part: Partial<Execution> = {}): Execution {
  const started = new Date(NOON + number * 1_000).toISOString();
  const base = {
    id: `x${number}`,
    uuid: uuidOf(number),
    command: `command ${number}`,
    description: '',
    labels: [],
    status: 'running',
    phase: 'running',
    paused: false,
    cause: null,
    signal: null,
    exit_code: null,
    error_message: null,
    principal: 'uid:0',
    session: null,
    start_time: started,
    created_at: started,
    end_time: null,
  };
  return { ...base, ...part } as Execution;
}

/** The part of one that ended so many seconds after {@link NOON}. */
export function ended(status: Execution['status'], seconds: number, code = status === 'completed' ? 0 : 1) {
  return {
    status,
    phase: 'finished' as const,
    cause: { kind: 'exited' as const },
    exit_code: code,
    end_time: new Date(NOON + seconds * 1_000).toISOString(),
  };
}

export function row(number: number, part: Partial<Execution> = {}, waiting = false, lookedAt = NOON): Row {
  return rowOf(execution(number, part), waiting, lookedAt);
}

export function byId(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((one) => [one.uuid, one]));
}
