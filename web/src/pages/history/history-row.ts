/** What a row of the history says; pure. */
import type { HistoryEntry } from '../../api/types';
import { historyState } from '../../model/display-state';
import { signalName } from '../process/signals';

/** Whose it is: the session, where it belonged to one, else who started it. */
export function historyOwner(entry: HistoryEntry): string {
  return entry.session ?? entry.principal;
}

/** The signal or the exit code of its end; `null` where there is neither. */
export function historyExit(entry: HistoryEntry): string | null {
  if (entry.signal !== undefined) return signalName(entry.signal);
  return entry.exit_code === undefined ? null : String(entry.exit_code);
}

/** Whether that is bad news: not for an end that somebody asked for. */
export function isBadEnd(entry: HistoryEntry): boolean {
  const state = historyState(entry);
  if (state === 'terminated' || state === 'completed') return false;
  return entry.signal !== undefined || (entry.exit_code ?? 0) !== 0;
}

/** Those that are shown as running, by their full ids. */
export function runningIds(entries: readonly HistoryEntry[]): string[] {
  return entries.filter(({ status }) => status === 'running').map(({ uuid }) => uuid);
}

/** The entries with what is known of some of them now; the order stays. */
export function withNewer(entries: readonly HistoryEntry[], newer: readonly HistoryEntry[]): HistoryEntry[] {
  const byId = new Map(newer.map((entry) => [entry.uuid, entry]));
  return entries.map((entry) => byId.get(entry.uuid) ?? entry);
}
