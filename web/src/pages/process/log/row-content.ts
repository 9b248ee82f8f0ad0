/** Builds the elements of a line. Text is only ever set as text; there is no markup in it. */
import type { LineTime } from '../../../app/preferences.svelte';
import { formatBytes } from '../../../format/duration';
import { formatClock, type TimeStyle } from '../../../format/time';
import { type Colour, parseLine, type Run, type Style, webAddress } from './ansi';
import type { LogLine } from './line';
import { inkOn, readableOn } from './palette';
import { cutRuns, lastState, markRuns, type Span, utf8Length, visibleControls } from './shown-text';

/** Texts of the rows, in the language of the page. */
export interface RowTexts {
  stderr: string;
  stdin: string;
  hex: string;
  redraws(n: number): string;
  cut(size: string): string;
  skipped(size: string): string;
  opens(address: string): string;
  line(number: string): string;
}

export interface RowStyle {
  time: LineTime;
  timeStyle: TimeStyle;
  /** When the execution started, in milliseconds. */
  startedAt: number | null;
  colours: boolean;
  /** The background of the log, as `#rrggbb`. */
  background: string;
  texts: RowTexts;
  formatNumber(number: number): string;
  hrefOf(line: number): string;
  /** Where the text of a line matches what is searched for. */
  matchesOf(line: LogLine, text: string): readonly Span[];
}

export interface RowFlags {
  isFailure: boolean;
  isChosen: boolean;
  isCurrentMatch: boolean;
}

/** Fills the row of a line. */
export function fillRow(row: HTMLElement, line: LogLine, flags: RowFlags, style: RowStyle): void {
  row.className = rowClass(line, flags);
  row.replaceChildren(gutter(line, style), text(line, flags, style));
}

function rowClass(line: LogLine, flags: RowFlags): string {
  const names = ['log-row', 'log-line'];
  if (line.stream === 'stderr') names.push('err');
  if (line.stream === 'stdin') names.push('in');
  if (flags.isFailure) names.push('failure');
  if (flags.isChosen) names.push('chosen');
  return names.join(' ');
}

function gutter(line: LogLine, style: RowStyle): HTMLElement {
  const cell = element('span', 'log-gutter');
  const number = element('a', 'log-number', style.formatNumber(line.number));
  number.href = style.hrefOf(line.number);
  number.tabIndex = -1;
  number.ariaLabel = style.texts.line(number.textContent ?? '');
  cell.append(number);
  if (style.time !== 'off') {
    const time = element('time', 'log-time', lineTime(line.at, style));
    time.dateTime = new Date(line.at).toISOString();
    cell.append(time);
  }
  const bar = element('span', 'log-bar');
  if (line.stream === 'stderr') bar.append(element('span', 'visually-hidden', style.texts.stderr));
  if (line.stream === 'stdin') bar.append(element('span', 'visually-hidden', style.texts.stdin));
  cell.append(bar);
  return cell;
}

export function lineTime(at: number, style: Pick<RowStyle, 'time' | 'timeStyle' | 'startedAt'>): string {
  if (style.time === 'elapsed' && style.startedAt !== null) {
    return `+${elapsed(Math.max(0, at - style.startedAt))}`;
  }
  return formatClock(new Date(at), style.timeStyle, true);
}

/** `0.084`, `12.345`, `3:12.345`, `2:21:09.345`: of the same digits for lines that follow each other. */
export function elapsed(ms: number): string {
  const seconds = `${String(Math.floor(ms / 1000) % 60)}.${String(Math.floor(ms) % 1000).padStart(3, '0')}`;
  if (ms < 60_000) return seconds;
  const minutes = Math.floor(ms / 60_000);
  const withMinutes = `${minutes % 60}:${seconds.padStart(6, '0')}`;
  if (minutes < 60) return withMinutes;
  return `${Math.floor(minutes / 60)}:${withMinutes.padStart(9, '0')}`;
}

function text(line: LogLine, flags: RowFlags, style: RowStyle): HTMLElement {
  const cell = element('span', 'log-text');
  const { text: shown, redraws } = lastState(line.text);
  const parsed = parseLine(shown);
  const { runs, cut } = cutRuns(parsed.runs);
  if (line.skippedBytes > 0) cell.append(note(style.texts.skipped(formatBytes(line.skippedBytes))));
  const spans = style.matchesOf(line, parsed.text);
  const runCell = element('span', flags.isCurrentMatch ? 'log-runs current' : 'log-runs');
  runCell.dir = 'auto';
  runCell.translate = false;
  runCell.append(...runElements(runs, spans, style));
  cell.append(runCell);
  if (redraws > 0) cell.append(note(style.texts.redraws(redraws)));
  const missing = cut > 0 ? utf8Length(parsed.text.slice(-cut)) + line.clippedBytes : line.clippedBytes;
  if (missing > 0) cell.append(action('open', style.texts.cut(formatBytes(missing))));
  if (line.binary) cell.append(action('hex', style.texts.hex));
  return cell;
}

function runElements(runs: readonly Run[], spans: readonly Span[], style: RowStyle): (HTMLElement | Text)[] {
  const marked = spans.length > 0 ? markRuns(runs, spans) : runs;
  return marked.flatMap((run) => {
    const hit = 'hit' in run && run.hit === true;
    if (run.link !== undefined) return [linkElement(run, run.link, hit, style)];
    return withAddresses(run).map(({ text: part, address }) =>
      address === undefined
        ? runElement(part, run.style, hit, style)
        : linkElement({ ...run, text: part }, address, hit, style),
    );
  });
}

const ADDRESS = /https?:\/\/[^\s"'<>`{}|\\^[\]]*[^\s"'<>`{}|\\^[\].,;:!?)]/g;

/** The text of a run, divided where it names an address of the web. */
function withAddresses(run: Run): { text: string; address?: string }[] {
  if (!run.text.includes('://')) return [{ text: run.text }];
  const parts: { text: string; address?: string }[] = [];
  let end = 0;
  for (const match of run.text.matchAll(ADDRESS)) {
    const address = webAddress(match[0]);
    if (address === undefined) continue;
    if (match.index > end) parts.push({ text: run.text.slice(end, match.index) });
    parts.push({ text: match[0], address });
    end = match.index + match[0].length;
  }
  if (end < run.text.length) parts.push({ text: run.text.slice(end) });
  return parts;
}

function linkElement(run: Run, address: string, hit: boolean, style: RowStyle): HTMLElement {
  const link = element('a', 'log-link');
  link.href = address;
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  link.title = style.texts.opens(address);
  link.append(runElement(run.text, run.style, hit, style));
  return link;
}

function runElement(content: string, look: Style | null, hit: boolean, style: RowStyle): HTMLElement | Text {
  const shown = visibleControls(content);
  if (!hit && (look === null || !style.colours)) return document.createTextNode(shown);
  const span = document.createElement(hit ? 'mark' : 'span');
  span.textContent = shown;
  if (look !== null && style.colours) applyStyle(span, look, style.background);
  return span;
}

function applyStyle(span: HTMLElement, look: Style, logBackground: string): void {
  for (const name of ['bold', 'dim', 'italic', 'underline', 'strike'] as const) {
    if (look[name]) span.classList.add(`log-${name}`);
  }
  const [foreground, background] = look.inverse
    ? [look.background ?? 'log', look.foreground ?? 'ink']
    : [look.foreground, look.background];
  if (background !== undefined) {
    setBackground(span, background);
  } else if (foreground !== undefined) {
    setForeground(span, foreground, logBackground);
  }
}

function setForeground(span: HTMLElement, colour: Colour, logBackground: string): void {
  if (typeof colour === 'number') span.classList.add(`log-f${colour}`);
  else if (colour.startsWith('#')) span.style.color = readableOn(logBackground, colour);
}

/** A background is as it was printed; the ink on it is what can be read. */
function setBackground(span: HTMLElement, colour: Colour): void {
  if (typeof colour === 'number') span.classList.add(`log-b${colour}`);
  else if (colour === 'ink') span.classList.add('log-inverse');
  else if (colour.startsWith('#')) {
    span.style.backgroundColor = colour;
    span.style.color = inkOn(colour);
  }
}

function note(content: string): HTMLElement {
  return element('span', 'log-note', content);
}

function action(name: string, content: string): HTMLElement {
  const button = element('button', 'log-action', content);
  button.type = 'button';
  button.dataset['action'] = name;
  return button;
}

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  content = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = className;
  if (content !== '') made.textContent = content;
  return made;
}
