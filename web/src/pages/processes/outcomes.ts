/** What became of each process of an action on several; pure. */
import type { CleanOutcome } from '../../api/types';

export type OutcomeKind = 'stopped' | 'killed' | 'cleaned' | 'running' | 'ended' | 'not_found' | 'failed';

export interface Outcome {
  uuid: string;
  kind: OutcomeKind;
  /** Why it failed, as the daemon says it. */
  reason?: string;
}

/** The order in which a summary tells: what was done, then what was not. */
const KINDS: readonly OutcomeKind[] = [
  'stopped',
  'killed',
  'cleaned',
  'running',
  'ended',
  'not_found',
  'failed',
];

export function cleanOutcomes(answer: CleanOutcome): Outcome[] {
  return [
    ...answer.success.map(({ pid }): Outcome => ({ uuid: pid, kind: 'cleaned' })),
    ...answer.running.map(({ pid }): Outcome => ({ uuid: pid, kind: 'running' })),
    ...answer.not_found.map(({ pid }): Outcome => ({ uuid: pid, kind: 'not_found' })),
    ...answer.failed.map(({ pid, reason }): Outcome => ({ uuid: pid, kind: 'failed', reason })),
  ];
}

/** How many of each kind; kinds without any are left out. */
export function summarize(outcomes: readonly Outcome[]): [OutcomeKind, number][] {
  return KINDS.map((kind): [OutcomeKind, number] => [
    kind,
    outcomes.filter((outcome) => outcome.kind === kind).length,
  ]).filter(([, count]) => count > 0);
}

/** Whether a row that is still there has to say what became of it. */
export function isNoted({ kind }: Outcome): boolean {
  return kind === 'running' || kind === 'ended' || kind === 'failed';
}
