/** The text of many lines, read from the server in the filter of the view: what is copied or saved. */

import { type LinePage, toPage } from './line';
import { createReader, type LineFilter } from './line-reader';
import { fetchLines } from './output-requests';
import { copiedText, ordered, type TextSelection } from './selection';

/** Lines of one request where nothing is searched for. */
const BATCH = 2_000;

export interface CollectOptions {
  filter: LineFilter;
  from: number;
  /** The last line; absent: to the end. */
  to?: number;
  /** What stands before each line, such as its time. */
  prefix?: (at: number) => string;
  /** The first and the last column, of a selection. */
  selection?: TextSelection;
  /** The most characters; more are left out. */
  limit?: number;
  /** Characters so far, and how much of the lines was read, from 0 to 1. */
  onprogress?: (characters: number, share: number) => void;
  signal?: AbortSignal;
}

export interface Collected {
  /** Pieces of the text, each of whole lines. */
  pieces: string[];
  lines: number;
  isCut: boolean;
}

export async function collectText(id: string, options: CollectOptions): Promise<Collected> {
  const { to = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = options;
  const pieces: string[] = [];
  let [at, lines, characters] = [options.from, 0, 0];
  while (at <= to) {
    const page = await readPage(id, options, at);
    const wanted = [...page.lines, ...(page.to >= page.ended ? page.open : [])].filter(
      (line) => line.number <= to,
    );
    const text = wanted.map((line) => lineText(line, options)).join('');
    pieces.push(text);
    lines += wanted.length;
    characters += text.length;
    const end = Math.min(to, page.ended);
    options.onprogress?.(
      characters,
      Math.min(1, (page.to - options.from + 1) / Math.max(1, end - options.from + 1)),
    );
    if (characters > limit) return { pieces, lines, isCut: true };
    if (page.to >= page.ended || page.to < at) break;
    at = page.to + 1;
  }
  return { pieces, lines, isCut: false };
}

async function readPage(id: string, { filter, signal }: CollectOptions, from: number): Promise<LinePage> {
  if (filter.match === null) {
    return toPage(await fetchLines(id, { line: from }, BATCH, filter.streams, signal), from);
  }
  return createReader(id, filter).forward(from, signal ?? new AbortController().signal);
}

function lineText(line: LinePage['lines'][number], { prefix, selection, to }: CollectOptions): string {
  let text = copiedText(line);
  let end = '\n';
  if (selection) {
    const [first, last] = ordered(selection);
    if (line.number === last.line) text = text.slice(0, last.column);
    if (line.number === first.line) text = text.slice(first.column);
  }
  if (line.number === to) end = '';
  return (prefix ? prefix(line.at) : '') + text + end;
}
