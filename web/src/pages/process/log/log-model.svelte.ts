/** The log of one execution: what is shown of it, and what a person does with it. The address is what is shown. */

import { serverNow } from '../../../api/server-clock';
import { problemText } from '../../../i18n/problem-text';
import { type Failure, FailureIndex } from './failure-index';
import { type Follow, type FollowInput, newLines, step } from './follow';
import { Highlighter } from './highlighter';
import type { LogLine } from './line';
import { type LogQuery, streamsOf } from './log-query';
import { LogSearch, NO_SEARCH, type SearchState } from './log-search';
import { LogSource } from './log-source';
import { LogView, type ViewElements, type ViewOptions, type ViewPosition } from './log-view';
import { type Direction, fetchLines } from './output-requests';
import { RateMeter } from './rate';
import type { RowFlags } from './row-content';
import type { LineRange } from './selection';
import { OutputShapeModel } from './shape.svelte';
import { utf8Length } from './shown-text';
import { TextSelector } from './text-selector';
import { parseTime } from './time-range';

/** What the log must know of its execution. */
export interface Subject {
  id: string;
  isFinished: boolean;
  /** Whether it ended as it should: then the end is of interest, else the first error. */
  isCompleted: boolean;
  startedAt: number | null;
  endedAt: number | null;
}

/** A place that the person marked. */
export interface Marker {
  /** It stands after this line. */
  after: number;
  at: number;
}

/** How long the first failure is awaited before the end is shown, in milliseconds. */
const OPENING_MS = 1_500;
/** The time between the last key and the search, in milliseconds. */
const TYPING_MS = 120;

export class LogModel {
  readonly id: string;
  readonly source: LogSource;
  readonly shape: OutputShapeModel;
  selector: TextSelector | null = null;

  firstLine = $state(1);
  ended = $state(0);
  bytes = $state(0);
  rate = $state<number | null>(null);
  isLoaded = $state(false);
  isFinished = $state(false);
  isEmpty = $state(true);
  /** Whether there is output, but nothing of it is shown with this filter. */
  isFilteredOut = $state(false);
  error = $state.raw<unknown>(null);
  /** Why a time range does not do. */
  rangeError = $state<string | null>(null);
  position = $state.raw<ViewPosition | null>(null);
  follow = $state.raw<Follow>({ kind: 'following' });
  chosen = $state.raw<LineRange | null>(null);
  search = $state.raw<SearchState>(NO_SEARCH);
  failures = $state.raw<Failure[]>([]);
  areFailuresCut = $state(false);
  /** Whether the next error or match is being looked for. */
  isSeeking = $state(false);
  markers = $state.raw<Marker[]>([]);
  bounds = $state.raw<Partial<LineRange>>({});

  #view: LogView | null = null;
  #subject: Subject;
  #query: LogQuery | null = null;
  #applied = { filter: '', match: '', range: '', chosen: '' };
  readonly #failureIndex: FailureIndex;
  readonly #search: LogSearch;
  readonly #highlighter: Highlighter;
  readonly #rate = new RateMeter();
  #highlights = 0;
  #seek = new AbortController();
  #typing: ReturnType<typeof setTimeout> | undefined;
  #isPlaced = false;

  constructor(
    subject: Subject,
    private readonly ongone: () => void,
  ) {
    this.id = subject.id;
    this.#subject = subject;
    this.source = new LogSource(
      subject.id,
      { streams: [], match: null },
      {
        onchange: () => this.#changed(),
        ongone: () => this.#gone(),
      },
    );
    this.shape = new OutputShapeModel(subject.id);
    this.#failureIndex = new FailureIndex(subject.id, () => this.#failuresChanged());
    this.#search = new LogSearch(subject.id, () => {
      this.search = this.#search.state;
      this.#view?.schedule();
    });
    this.#highlighter = new Highlighter(() => {
      this.#highlights += 1;
      this.onredraw?.();
    });
  }

  /** Called when rows must be built again. */
  onredraw: (() => void) | null = null;
  get highlightVersion(): number {
    return this.#highlights;
  }

  close(): void {
    this.source.close();
    this.shape.close();
    this.#failureIndex.close();
    this.#search.close();
    this.#highlighter.close();
    this.#seek.abort();
    clearTimeout(this.#typing);
    this.selector?.close();
    this.#view?.destroy();
  }

  /** Begins to show lines in these elements. */
  attach(elements: ViewElements, options: ViewOptions): void {
    const view = new LogView(elements, this.source, options, {
      onmove: (position) => this.#moved(position),
      onleave: () => this.#dispatch({ kind: 'left', ended: this.ended }),
      onreachend: () => this.#dispatch({ kind: 'reached_end' }),
    });
    this.#view = view;
    this.selector = new TextSelector(
      {
        container: elements.rows,
        runsOf: (line) => view.runsOf(line),
        lineOf: (node) => view.list.lineAt(node)?.number ?? null,
        drawn: () => {
          const lines = view.drawnLines();
          const [first, last] = [lines[0], lines.at(-1)];
          return first && last ? { from: first.number, to: last.number } : null;
        },
      },
      () => this.#dispatch({ kind: 'left', ended: this.ended }),
    );
    view.onrendered = () => this.selector?.restore();
    this.source.tailLines = view.capacity + 16;
    this.source.start();
  }

  setOptions(options: ViewOptions): void {
    this.rowHeight = options.rowHeight;
    this.#view?.setOptions(options);
  }

  setSubject(subject: Subject): void {
    const hasEnded = subject.isFinished && !this.#subject.isFinished;
    this.#subject = subject;
    if (hasEnded) this.source.pollNow();
  }

  get subject(): Subject {
    return this.#subject;
  }

  lineAt(target: EventTarget | null): LogLine | null {
    return this.#view?.list.lineAt(target) ?? null;
  }

  drawnLines(): LogLine[] {
    return this.#view?.drawnLines() ?? [];
  }

  // What is shown

  /** Shows what the address says. */
  apply(query: LogQuery): void {
    const isFirst = this.#query === null;
    this.#query = query;
    const filter = JSON.stringify([query.stream, query.only ? query.match : null]);
    const range = JSON.stringify([query.since, query.until]);
    const match = JSON.stringify([query.match, query.stream, range]);
    const chosen = JSON.stringify(query.chosen);
    const before = this.#applied;
    this.#applied = { filter, match, range, chosen };
    if (filter !== before.filter && !(isFirst && query.stream === 'both' && !query.only)) this.#filter(query);
    if (range !== before.range && !(isFirst && query.since === null && query.until === null)) {
      void this.#setRange(query);
    } else if (match !== before.match && !(isFirst && query.match === null)) {
      this.#restartSearch(query, isFirst);
    }
    if (chosen !== before.chosen) this.#choose(query.chosen);
  }

  #filter(query: LogQuery): void {
    this.source.setFilter({ streams: streamsOf(query.stream), match: query.only ? query.match : null });
    this.#view?.reset();
  }

  #restartSearch(query: LogQuery, isAtOnce: boolean): void {
    this.#highlighter.setMatch(query.match);
    this.#highlights += 1;
    this.onredraw?.();
    clearTimeout(this.#typing);
    const start = () => {
      const scope = { streams: streamsOf(query.stream), bounds: this.bounds, finished: this.isFinished };
      this.#search.start(query.match, scope);
      // A link shows what it says; a person who types goes to what is found.
      if (query.match !== null && !isAtOnce) void this.#firstMatch();
    };
    if (isAtOnce || query.match === null) start();
    else this.#typing = setTimeout(start, TYPING_MS);
  }

  /** The first match that is in view or after it. */
  async #firstMatch(): Promise<void> {
    const from = this.position?.topPosition ?? this.firstLine;
    const line = await this.#search.find(from, 'next');
    if (line !== null) this.#goTo(line, true);
  }

  async #setRange(query: LogQuery): Promise<void> {
    this.rangeError = null;
    try {
      const [from, until] = await Promise.all([this.#lineAtTime(query.since), this.#lineAtTime(query.until)]);
      if (this.#query !== query) return;
      this.bounds = {
        ...(from === null ? {} : { from }),
        ...(until === null ? {} : { to: until - 1 }),
      };
    } catch (error) {
      this.rangeError = problemText(error);
      return;
    }
    this.source.setBounds(this.bounds);
    this.#view?.reset();
    this.#changed();
    this.#restartSearch(query, true);
  }

  /** The first line of a time, as written in the address; `null` where none is written. */
  async #lineAtTime(text: string | null): Promise<number | null> {
    if (text === null) return null;
    const reference = this.#subject.endedAt ?? serverNow();
    const at = parseTime(text, reference, this.isUtc);
    if (at === null) throw new Error(text);
    const page = await fetchLines(this.id, { at: new Date(at).toISOString() }, 1, []);
    return page.lines[0]?.line ?? page.ended_lines + 1;
  }

  /** Whether clocks are those of UTC. */
  isUtc = false;

  #choose(chosen: LineRange | null): void {
    this.chosen = chosen;
    if (chosen !== null && !this.#isInView(chosen.from)) this.#goTo(chosen.from, false);
    else this.#view?.schedule();
    if (chosen !== null) this.#dispatch({ kind: 'left', ended: this.ended });
  }

  #isInView(line: number): boolean {
    const { position } = this;
    return (
      this.#isPlaced && position !== null && line > position.topPosition && line < position.bottomPosition
    );
  }

  // What the parts tell

  #changed(): void {
    const { source } = this;
    const isFirst = !this.isLoaded && source.isLoaded;
    this.firstLine = source.firstLine;
    this.ended = source.ended;
    this.isLoaded = source.isLoaded;
    this.isFinished = source.finished;
    this.error = source.error;
    this.isEmpty = source.last < source.first;
    const end = source.open.at(-1) ?? this.#view?.drawnLines().at(-1);
    if (end && end.offset >= 0) this.bytes = Math.max(this.bytes, end.offset + utf8Length(end.text) + 1);
    this.#rate.add(performance.now(), source.ended);
    this.rate = this.#rate.perSecond;
    this.shape.update(source.ended, source.finished);
    this.#failureIndex.update(source.firstLine, source.ended);
    this.#search.grow(source.ended, source.finished);
    if (isFirst) void this.#open();
    if (this.#isPlaced) this.#view?.schedule();
  }

  #gone(): void {
    this.source.close();
    this.ongone();
  }

  #failuresChanged(): void {
    this.failures = [...this.#failureIndex.failures.values()];
    this.areFailuresCut = this.#failureIndex.isCut;
    this.#view?.schedule();
  }

  #moved(position: ViewPosition): void {
    this.position = position;
    const { topPosition, bottomPosition } = position;
    this.#failureIndex.look(topPosition, bottomPosition);
    const specs = this.#view?.list.specs ?? [];
    const isEmpty = specs.every((spec) => spec.kind === 'mark' || spec.kind === 'cursor');
    this.isFilteredOut = this.isLoaded && this.ended > 0 && isEmpty;
  }

  /** The first view: the end of what runs or went well, the first error of what did not. */
  async #open(): Promise<void> {
    const isTold = this.#query?.chosen != null;
    if (!isTold && this.#subject.isFinished && !this.#subject.isCompleted) {
      const signal = AbortSignal.timeout(OPENING_MS);
      const first = await this.#failureIndex
        .find(this.source.first, 'next', (failure) => this.#isShown(failure), signal)
        .catch(() => null);
      if (first && !this.#isPlaced) this.#goTo(first.line, false);
    }
    this.#isPlaced = true;
    this.#view?.schedule();
  }

  flagsOf(line: LogLine): RowFlags {
    const { chosen } = this;
    return {
      isFailure: line.terminated && this.#failureIndex.has(line.number),
      isChosen: chosen !== null && line.number >= chosen.from && line.number <= chosen.to,
      isCurrentMatch: this.search.current === line.number,
    };
  }

  matchesOf(text: string) {
    return this.#highlighter.spansOf(text);
  }

  // Following

  #dispatch(input: FollowInput): void {
    this.follow = step(this.follow, input);
    const follows = this.follow.kind === 'following';
    if (this.#view) {
      this.#view.follows = follows;
      this.source.tailLines = follows ? this.#view.capacity + 16 : 1;
      if (follows) this.#view.schedule();
    }
  }

  toggleFollow(): void {
    this.#isPlaced = true;
    this.#dispatch({ kind: 'toggled', ended: this.ended });
    if (this.follow.kind === 'following') this.source.pollNow();
  }

  get newLines(): number {
    return newLines(this.follow, this.ended);
  }

  // Going about

  #leave(): void {
    this.#isPlaced = true;
    this.#dispatch({ kind: 'left', ended: this.ended });
  }

  toStart(): void {
    this.#leave();
    this.#view?.toStart();
  }

  toEnd(): void {
    this.#isPlaced = true;
    this.#dispatch({ kind: 'asked' });
    this.#view?.toEnd();
  }

  /** Scrolls by so many views. */
  page(views: number): void {
    this.#isPlaced = true;
    const height = this.#view ? (this.#view.capacity - 2) * this.rowHeight : 0;
    this.#view?.scrollBy(views * Math.max(this.rowHeight, height));
  }

  /** Pixels of a row that is not wrapped. */
  rowHeight = 20;

  #goTo(line: number, lazily: boolean): void {
    this.#leave();
    this.#view?.toLine(line, lazily);
  }

  goToLine(line: number): void {
    this.#goTo(Math.max(this.source.first, Math.min(line, this.source.last)), false);
  }

  /** Shows the first line of a time; its number. */
  async goToTime(at: number): Promise<number | null> {
    const page = await fetchLines(
      this.id,
      { at: new Date(at).toISOString() },
      1,
      streamsOf(this.#query?.stream ?? 'both'),
    );
    const line = page.lines[0]?.line ?? (page.ended_lines > 0 ? page.ended_lines : null);
    if (line !== null) this.#goTo(line, false);
    return line;
  }

  /** Goes to the next match or the one before; its line. */
  async nextMatch(direction: Direction): Promise<number | null> {
    const from = this.#from(this.search.current, direction);
    this.isSeeking = true;
    const line = await this.#search.find(from, direction);
    this.isSeeking = false;
    if (line !== null) this.#goTo(line, true);
    return line;
  }

  #failureAt: number | null = null;

  /** Goes to the next error or the one before, over the end to the other one; its line, or `null` without any. */
  async nextFailure(direction: Direction): Promise<number | null> {
    this.#seek.abort();
    this.#seek = new AbortController();
    const { signal } = this.#seek;
    this.isSeeking = true;
    try {
      const from = this.#from(this.#failureAt, direction);
      const other = direction === 'next' ? this.source.first : this.source.last;
      const isWanted = (failure: Failure) => this.#isShown(failure);
      const found =
        (await this.#failureIndex.find(from, direction, isWanted, signal)) ??
        (await this.#failureIndex.find(other, direction, isWanted, signal));
      if (found) {
        this.#failureAt = found.line;
        this.#goTo(found.line, false);
      }
      return found?.line ?? null;
    } catch {
      return null;
    } finally {
      if (!signal.aborted) this.isSeeking = false;
    }
  }

  /** Where a search goes on: at the place it found last, where that is in view; else at the edge of the view. */
  #from(last: number | null, direction: Direction): number {
    const { position } = this;
    const [top, bottom] = [position?.topPosition ?? this.firstLine, position?.bottomPosition ?? this.ended];
    if (last !== null && last >= top && last <= bottom) return direction === 'next' ? last + 1 : last - 1;
    return direction === 'next' ? top : bottom;
  }

  #isShown(failure: Failure): boolean {
    const streams = streamsOf(this.#query?.stream ?? 'both');
    const { from = 1, to = Number.POSITIVE_INFINITY } = this.bounds;
    return (
      (streams.length === 0 || streams.includes(failure.stream)) && failure.line >= from && failure.line <= to
    );
  }

  get shownFailures(): Failure[] {
    return this.failures.filter((failure) => this.#isShown(failure));
  }

  /** Scrolls by so many rows. */
  scroll(rows: number): void {
    this.#isPlaced = true;
    this.#view?.scrollBy(rows * this.rowHeight);
  }

  /** Selects every line that is shown. */
  selectAll(): void {
    const { first, last } = this.source;
    this.selector?.select({
      anchor: { line: first, column: 0 },
      focus: { line: last, column: Number.POSITIVE_INFINITY },
    });
    this.#leave();
  }

  /** Marks the end, or the line in view where it does not follow. */
  mark(): void {
    const after = this.follow.kind === 'following' ? this.ended : (this.position?.topPosition ?? 1) - 1;
    this.markers = [...this.markers.filter((marker) => marker.after !== after), { after, at: serverNow() }];
    this.onredraw?.();
  }

  retry(): void {
    this.source.retry();
  }
}
