/** What is done to rows of the list, and what became of it: at the row, and counted where it was several. */
import { t } from '../../i18n/index.svelte';
import { isActive } from '../../model/display-state';
import {
  cleanAllExecutions,
  cleanExecutions,
  pauseExecution,
  rerunExecution,
  resumeExecution,
  stopExecution,
} from '../../state/execution-actions';
import { forEachLimited } from '../../state/refresh';
import { cleanOutcomes, isNoted, type Outcome, type OutcomeKind, summarize } from './outcomes';
import type { ProcessList } from './process-list.svelte';
import type { Row } from './rows';

/** Stops that are asked for at a time. */
const CONCURRENT_STOPS = 8;
const COPIED_MS = 1_500;

/** What is asked before it is done. */
export type Question =
  | { kind: 'stop' | 'force' | 'clean'; rows: Row[] }
  | { kind: 'clean_all'; count: number };

export class ListActions {
  /** What became of the last action on several. */
  summary = $state.raw<[OutcomeKind, number][]>([]);
  question = $state.raw<Question | null>(null);
  /** Why the last action on all failed. */
  problem = $state.raw<unknown>(null);
  /** What screen readers are told. */
  announcement = $state('');
  /** An action on several is on its way. */
  isBusy = $state(false);
  /** What is under way, by row and kind: asked for once more, it is not done twice. */
  readonly #underWay = new Set<string>();
  readonly #list: ProcessList;

  constructor(list: ProcessList) {
    this.#list = list;
  }

  /** Stops: one at once, several after a question. `asks`: also one. */
  stop(rows: Row[], asks = false): void {
    const living = rows.filter(({ execution }) => isActive(execution));
    if (rows.length === 1 && living.length === 0)
      this.#report([{ uuid: rows[0]?.uuid ?? '', kind: 'ended' }]);
    else if (rows.length > 1 || asks) this.#ask({ kind: 'stop', rows });
    else void this.#stopAll(rows, false);
  }

  forceStop(rows: Row[]): void {
    this.#ask({ kind: 'force', rows });
  }

  clean(rows: Row[]): void {
    if (rows.length > 1) this.#ask({ kind: 'clean', rows });
    else void this.#cleanAll(rows);
  }

  cleanFinished(count: number): void {
    this.question = { kind: 'clean_all', count };
  }

  #ask(question: Question): void {
    if ('rows' in question && question.rows.length === 0) return;
    this.question = question;
  }

  /** Does what was asked. */
  async confirm(): Promise<void> {
    const question = this.question;
    this.question = null;
    if (!question) return;
    if (question.kind === 'clean_all') await this.#cleanEverything();
    else if (question.kind === 'clean') await this.#cleanAll(question.rows);
    else await this.#stopAll(question.rows, question.kind === 'force');
  }

  #stopAll(rows: Row[], force: boolean): Promise<void> {
    return this.#once(rows, force ? 'force' : 'stop', (free) => this.#stopEach(free, force));
  }

  async #stopEach(rows: Row[], force: boolean): Promise<void> {
    const outcomes: Outcome[] = [];
    await this.#busy(async () => {
      await forEachLimited(rows, CONCURRENT_STOPS, async ({ uuid }) => {
        outcomes.push(await this.#stopOne(uuid, force));
      });
    });
    this.#report(outcomes, rows.length > 1);
  }

  async #stopOne(uuid: string, force: boolean): Promise<Outcome> {
    const row = this.#list.byId.get(uuid);
    if (!row) return { uuid, kind: 'not_found' };
    if (!isActive(row.execution)) return { uuid, kind: 'ended' };
    try {
      await stopExecution(uuid, force);
      return { uuid, kind: force ? 'killed' : 'stopped' };
    } catch (error) {
      return { uuid, kind: 'failed', reason: messageOf(error) };
    }
  }

  #cleanAll(rows: Row[]): Promise<void> {
    return this.#once(rows, 'clean', (free) => this.#cleanEach(free));
  }

  async #cleanEach(rows: Row[]): Promise<void> {
    let outcomes: Outcome[] = [];
    await this.#busy(async () => {
      try {
        outcomes = cleanOutcomes(await cleanExecutions(rows.map(({ uuid }) => uuid)));
      } catch (error) {
        outcomes = rows.map(({ uuid }) => ({ uuid, kind: 'failed', reason: messageOf(error) }));
      }
    });
    this.#report(outcomes, rows.length > 1);
  }

  async #cleanEverything(): Promise<void> {
    await this.#busy(async () => {
      try {
        const { count, failed } = await cleanAllExecutions();
        this.summary =
          failed.length > 0
            ? [
                ['cleaned', count],
                ['failed', failed.length],
              ]
            : [['cleaned', count]];
      } catch (error) {
        this.problem = error;
      }
    });
    this.announcement = this.summaryText;
  }

  async rerun(row: Row): Promise<void> {
    await this.#note(row, async () => {
      const started = await rerunExecution(row.uuid);
      this.#list.notes.set(row.uuid, { kind: 'started', id: started.id });
      this.announcement = t('processes.note_started', { id: started.id });
    });
  }

  async pause(row: Row): Promise<void> {
    const action = row.execution.paused ? resumeExecution : pauseExecution;
    await this.#note(row, async () => {
      await action(row.uuid);
    });
  }

  async copy(rows: Row[], what: 'id' | 'command'): Promise<void> {
    await navigator.clipboard.writeText(rows.map(({ execution }) => execution[what]).join('\n'));
    this.announcement = t('common.copied');
    const { notes } = this.#list;
    for (const { uuid } of rows) notes.set(uuid, { kind: 'outcome', outcome: 'copied' });
    setTimeout(() => {
      for (const { uuid } of rows) {
        const note = notes.get(uuid);
        if (note?.kind === 'outcome' && note.outcome === 'copied') notes.delete(uuid);
      }
    }, COPIED_MS);
  }

  /** What became of the last action on several, in words. */
  get summaryText(): string {
    return inWords(this.summary);
  }

  /** Forgets what became of the last action. */
  clear(): void {
    this.summary = [];
    this.problem = null;
    this.#list.notes.clear();
  }

  #report(outcomes: Outcome[], several = false): void {
    for (const outcome of outcomes) {
      const { uuid, kind, reason } = outcome;
      if (!isNoted(outcome)) this.#list.notes.delete(uuid);
      else if (kind === 'failed') this.#list.notes.set(uuid, { kind: 'problem', text: reason ?? '' });
      else if (kind === 'running' || kind === 'ended')
        this.#list.notes.set(uuid, { kind: 'outcome', outcome: kind });
    }
    const summary = summarize(outcomes);
    this.announcement = inWords(summary);
    this.summary = several ? summary : [];
  }

  async #note(row: Row, action: () => Promise<void>): Promise<void> {
    await this.#once([row], 'note', async () => {
      this.#list.notes.delete(row.uuid);
      try {
        await action();
      } catch (error) {
        this.#list.notes.set(row.uuid, { kind: 'problem', text: messageOf(error) });
      }
    });
  }

  /** Does it to those rows to which it is not being done. */
  async #once<R extends { uuid: string }>(
    rows: readonly R[],
    kind: 'note' | 'stop' | 'force' | 'clean',
    action: (rows: R[]) => Promise<void>,
  ): Promise<void> {
    const keyOf = ({ uuid }: R) => `${kind} ${uuid}`;
    const free = rows.filter((row) => !this.#underWay.has(keyOf(row)));
    if (free.length === 0) return;
    for (const row of free) this.#underWay.add(keyOf(row));
    try {
      await action(free);
    } finally {
      for (const row of free) this.#underWay.delete(keyOf(row));
    }
  }

  async #busy(action: () => Promise<void>): Promise<void> {
    this.isBusy = true;
    try {
      await action();
    } finally {
      this.isBusy = false;
    }
  }
}

function inWords(summary: readonly [OutcomeKind, number][]): string {
  return summary.map(([kind, n]) => t(`processes.summary_${kind}`, { n })).join(' · ');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
