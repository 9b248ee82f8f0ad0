/** What a person does to the log by keys and buttons. What is shown then is in the address. */

import { type LineTime, preferences } from '../../../app/preferences.svelte';
import { router, setQuery } from '../../../app/router.svelte';
import { formatClock } from '../../../format/time';
import { language, t } from '../../../i18n/index.svelte';
import { problemText } from '../../../i18n/problem-text';
import { canCopy, copyLater } from './clipboard';
import { collectText } from './collect-text';
import type { LogModel } from './log-model.svelte';
import { matchParameters, parseLogQuery, type StreamChoice, streamsOf, timeParameter } from './log-query';
import type { LogActions } from './log-shortcuts';
import type { Match } from './output-requests';
import { formatRange, type LineRange, ordered, rangeTo, selectedText } from './selection';

/** The most that is copied; more is saved as a file. */
const COPY_CHARACTERS = 10_000_000;
/** From so many characters on, it is told how far the copy is. */
const TOLD_CHARACTERS = 1_000_000;
const NOTICE_MS = 4_000;
const STREAMS: StreamChoice[] = ['both', 'out', 'err'];
const TIMES: LineTime[] = ['off', 'clock', 'elapsed'];

export class LogCommands {
  /** What the person is asked for. */
  asked = $state<'line' | 'download' | null>(null);
  /** What was done, for a moment. */
  notice = $state<string | null>(null);
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;
  /** On a phone, lines wrap unless the person says otherwise. */
  #phoneWraps = $state(true);
  /** The line that a range is chosen from. */
  #firstChosen: number | null = null;

  constructor(
    private readonly model: LogModel,
    private readonly isPhone: () => boolean,
  ) {}

  get #query() {
    return parseLogQuery(router.query);
  }

  get wraps(): boolean {
    return this.#query.wraps ?? (this.isPhone() ? this.#phoneWraps : preferences.logWrap);
  }

  get time(): LineTime {
    return this.#query.time ?? preferences.logTime;
  }

  readonly actions: Omit<LogActions, 'focusSearch'> = {
    toggleFollow: () => this.model.toggleFollow(),
    toStart: () => this.model.toStart(),
    toEnd: () => this.model.toEnd(),
    nextMatch: (backward) => void this.nextMatch(backward),
    nextFailure: (backward) => void this.nextFailure(backward),
    toggleWrap: () => this.toggleWrap(),
    nextTime: () => this.setTime(TIMES[(TIMES.indexOf(this.time) + 1) % TIMES.length] ?? 'clock'),
    mark: () => this.model.mark(),
    showMinutes: (minutes) => this.setRange(minutes === 0 ? null : `${minutes}m`, null),
    nextStream: (backward) => {
      const step = backward ? STREAMS.length - 1 : 1;
      this.setStream(STREAMS[(STREAMS.indexOf(this.#query.stream) + step) % STREAMS.length] ?? 'both');
    },
    askLine: () => (this.asked = 'line'),
    copy: (withTimes) => void this.copy(withTimes),
    copyLink: () => void this.copyLink(),
    download: () => (this.asked = 'download'),
  };

  toggleWrap(): void {
    const wraps = !this.wraps;
    if (this.isPhone()) this.#phoneWraps = wraps;
    else preferences.logWrap = wraps;
    if (router.query.has('wrap')) setQuery({ wrap: wraps ? '1' : '0' });
  }

  setTime(time: LineTime): void {
    preferences.logTime = time;
    if (router.query.has('time')) setQuery({ time: timeParameter(time) });
    const names = {
      off: t('process.time_off'),
      clock: t('process.time_clock'),
      elapsed: t('process.time_elapsed'),
    };
    this.tell(names[time]);
  }

  setStream(stream: StreamChoice): void {
    setQuery({ stream: stream === 'both' ? null : stream }, { push: true });
  }

  setRange(since: string | null, until: string | null): void {
    setQuery({ since, until }, { push: true });
  }

  /** `push` where the person has finished typing. */
  setMatch(match: Match | null, push = false): void {
    const only = match === null ? { only: null } : {};
    setQuery({ ...matchParameters(match), ...only }, { push });
  }

  setOnly(only: boolean): void {
    setQuery({ only: only ? '1' : null }, { push: true });
  }

  /** Marks a line, or with `extends` the range from the one that was marked before. */
  chooseLine(line: number, extend = false): void {
    const first = extend ? (this.#firstChosen ?? this.model.chosen?.from ?? line) : line;
    this.#firstChosen = first;
    this.#choose(rangeTo(first, line));
  }

  #choose(range: LineRange): void {
    setQuery({ line: formatRange(range) });
  }

  async nextMatch(backward: boolean): Promise<void> {
    if (this.model.search.match === null) return;
    const line = await this.model.nextMatch(backward ? 'previous' : 'next');
    if (line === null && this.model.search.problem === null) this.tell(t('process.no_match'));
  }

  async nextFailure(backward: boolean): Promise<void> {
    const line = await this.model.nextFailure(backward ? 'previous' : 'next');
    if (line === null) this.tell(t('process.no_errors'));
    else this.chooseLine(line);
  }

  /** Tells something for a moment, where nothing moves. */
  tell(text: string): void {
    this.notice = text;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => (this.notice = null), NOTICE_MS);
  }

  // Copying

  readonly oncopy = (event: ClipboardEvent): void => {
    const selection = this.model.selector?.selection;
    if (!selection || !this.model.selector?.hasText || !event.clipboardData) return;
    event.preventDefault();
    const [start, end] = ordered(selection);
    const lines = this.model
      .drawnLines()
      .filter((line) => line.number >= start.line && line.number <= end.line);
    const isAllDrawn = lines[0]?.number === start.line && lines.at(-1)?.number === end.line;
    if (isAllDrawn) event.clipboardData.setData('text/plain', selectedText(selection, lines));
    else void this.copy();
  };

  /** Copies what is selected, else the chosen lines, else the first line in view. `withTimes`: each after its time. */
  async copy(withTimes = false): Promise<void> {
    if (!canCopy()) return this.tell(t('process.copy_not_possible'));
    const { selector, chosen, position } = this.model;
    const selection = selector?.hasText ? selector.selection : null;
    const range = selection
      ? { from: ordered(selection)[0].line, to: ordered(selection)[1].line }
      : (chosen ?? { from: position?.topPosition ?? 1, to: position?.topPosition ?? 1 });
    const style = { language: language(), utc: preferences.utc };
    const collected = collectText(this.model.id, {
      filter: { streams: streamsOf(this.#query.stream), match: this.#query.only ? this.#query.match : null },
      ...range,
      limit: COPY_CHARACTERS,
      ...(selection ? { selection } : {}),
      ...(withTimes ? { prefix: (at: number) => `${formatClock(new Date(at), style, true)} ` } : {}),
      onprogress: (characters, share) => {
        if (characters > TOLD_CHARACTERS)
          this.tell(t('process.copying', { percent: Math.round(share * 100) }));
      },
    });
    try {
      await copyLater(collected.then(({ pieces }) => pieces.join('')));
      const { lines, isCut } = await collected;
      this.tell(isCut ? t('process.copied_cut') : t('process.copied_lines', { n: lines }));
    } catch (error) {
      this.tell(problemText(error));
    }
  }

  async copyLink(): Promise<void> {
    if (!canCopy()) return this.tell(t('process.copy_not_possible'));
    const line = this.model.chosen?.from ?? this.model.position?.topPosition ?? 1;
    const url = new URL(window.location.href);
    url.searchParams.set('line', this.model.chosen ? formatRange(this.model.chosen) : String(line));
    await copyLater(Promise.resolve(url.href));
    this.tell(t('process.copied_link'));
  }
}
