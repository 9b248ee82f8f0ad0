/** What the list of processes shows, and in which order it stands. */

import { untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { serverNow } from '../../api/server-clock';
import { preferences } from '../../app/preferences.svelte';
import { router, setQuery } from '../../app/router.svelte';
import { executions } from '../../state/executions.svelte';
import { interactions } from '../../state/interactions.svelte';
import { usage } from '../../state/usage.svelte';
import { lastLook } from './last-look';
import {
  type Column,
  isSortable,
  type ListFilter,
  parseListQuery,
  pressHead,
  type Sort,
  type StatusTab,
  sortParameter,
  statusParameter,
} from './list-query';
import { holdRows, insertRows, isStale, NO_ROWS, type RowOrder, sortRows } from './row-order';
import { type Compare, comparison, countTabs, facets, matcher, type Row, rowOf } from './rows';
import { Selection } from './selection.svelte';

/** What a row says of an action on it, in place of its description. */
export type RowNote =
  | { kind: 'outcome'; outcome: 'running' | 'ended' | 'copied' }
  | { kind: 'problem'; text: string }
  | { kind: 'started'; id: string };

/** Which parts of the person are at the list: then no row comes in. */
interface Presence {
  pointer: boolean;
  focus: boolean;
  scrolled: boolean;
}

export class ProcessList {
  readonly selection = new Selection();
  readonly notes = new SvelteMap<string, RowNote>();
  readonly presence: Presence = $state({ pointer: false, focus: false, scrolled: false });
  /** The full id of the row that keys are about. */
  cursor = $state<string | null>(null);

  readonly #lookedAt = lastLook();
  #order = $state.raw<RowOrder>(NO_ROWS);
  #sortRequests = $state(0);
  #sortedFor = '';
  /** The rows of the arrangement, and of the one before. */
  #arranged: ReadonlyMap<string, Row> = new Map();
  #before: ReadonlyMap<string, Row> = new Map();

  readonly query = $derived(parseListQuery(router.query));
  readonly density = $derived(router.query.get('density') === 'compact' ? 'compact' : this.#chosenDensity());
  /** The open question of a process, by its short id. */
  readonly questions = $derived(
    new Map(interactions.pending.flatMap(({ execution, id }) => (execution ? [[execution, id]] : []))),
  );
  readonly all = $derived(
    executions.list.map((execution) => rowOf(execution, this.questions.has(execution.id), this.#lookedAt)),
  );
  readonly byId = $derived(new Map(this.all.map((row) => [row.uuid, row])));
  readonly matching = $derived(new Map(this.all.filter(matcher(this.query)).map((row) => [row.uuid, row])));
  readonly counts = $derived(countTabs(this.all, this.query));
  /** How many have ended, whatever the filter shows. */
  readonly ended = $derived(this.all.reduce((count, { tab }) => count + Number(tab !== 'active'), 0));
  readonly facets = $derived(facets(this.all));
  readonly hasLabels = $derived(this.facets.labels.length > 0);
  readonly hasOwners = $derived(this.facets.owners.length > 1);
  readonly isStale = $derived(isStale(this.#order, this.byId, this.#compare(this.query.sort)));
  readonly selected = $derived([...this.selection.ids].flatMap((id) => this.byId.get(id) ?? []));

  /** Full ids, as they stand. */
  get ids(): readonly string[] {
    return this.#order.ids;
  }

  /** How many wait to come in. */
  get held(): number {
    return this.#order.held;
  }

  #chosenDensity(): 'comfortable' | 'compact' {
    return router.query.get('density') === 'comfortable' ? 'comfortable' : preferences.density;
  }

  #compare(sort: Sort): Compare {
    // The order is that of the moment: what is used changes all the time.
    const samples = untrack(() => usage.all);
    return comparison(sort, (uuid) => samples.get(uuid)?.at(-1)?.cpu_percent ?? 0, serverNow());
  }

  /** A row that stands; also one that is gone, until the order leaves it out, so that its focus can be passed on. */
  rowOf(id: string): Row | undefined {
    return this.byId.get(id) ?? this.#before.get(id);
  }

  /** Brings the order up to date. Called before the page is drawn, whenever something of it changed. */
  arrange(): void {
    const { matching, byId, query } = this;
    const { pointer, focus, scrolled } = this.presence;
    const key = JSON.stringify([query, this.#sortRequests]);
    const compare = this.#compare(query.sort);
    const isPresent = executions.complete && (pointer || focus || scrolled);
    this.#before = this.#arranged;
    this.#arranged = byId;
    untrack(() => {
      if (key !== this.#sortedFor) this.#order = sortRows([...matching.values()], compare);
      else if (isPresent) this.#order = holdRows(this.#order, matching, byId);
      else this.#order = insertRows(this.#order, matching, compare);
      this.#sortedFor = key;
      this.selection.keep((id) => byId.has(id));
      for (const id of this.notes.keys()) if (!byId.has(id)) this.notes.delete(id);
    });
  }

  /** Sorts by what is known now, and lets in what waits. */
  sortAgain(): void {
    this.#sortRequests += 1;
  }

  pressHead(column: Column): void {
    if (!isSortable(column)) return;
    setQuery({ sort: sortParameter(pressHead(this.query.sort, column)) }, { push: true });
    this.sortAgain();
  }

  showTab(tab: StatusTab): void {
    setQuery({ status: statusParameter([tab]) }, { push: true });
    this.sortAgain();
  }

  /** Sets what is filtered by. `typing`: the person has not finished. */
  filter(changes: Partial<ListFilter>, typing = false): void {
    const { status, labels, project, owner, text } = { ...this.query, ...changes };
    const parameters = { status: statusParameter(status), label: labels, project, owner, q: text };
    setQuery(parameters, { push: !typing });
  }

  addLabel(label: string): void {
    this.filter({ labels: [...new Set([...this.query.labels, label])] });
  }

  clearFilters(): void {
    this.filter({ status: [], labels: [], project: '', owner: '', text: '' });
  }

  toggleDensity(): void {
    const density = this.density === 'compact' ? 'comfortable' : 'compact';
    preferences.density = density;
    setQuery({ density });
  }
}
