/** What of a line is shown: the last state of a line that was drawn again and again, without what is too long. */
import type { Run } from './ansi';

/** A longer line is cut in view. */
export const SHOWN_CHARACTERS = 4_096;

export interface Redrawn {
  text: string;
  /** How often the line was drawn again. */
  redraws: number;
}

/** The line as a terminal would show it after its carriage returns: the last text over what was there before. */
export function lastState(line: string): Redrawn {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (!text.includes('\r')) return { text, redraws: 0 };
  const states = text.split('\r').filter((state) => state !== '');
  const last = states.at(-1) ?? '';
  return { text: last, redraws: Math.max(0, states.length - 1) };
}

/** Control characters as pictures, so that they are seen and do nothing; tabs are left as they are. */
export function visibleControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\0-\x08\x0a-\x1f\x7f]/g, (character) =>
    character === '\x7f' ? '\u2421' : String.fromCharCode(0x2400 + character.charCodeAt(0)),
  );
}

/** The first characters of runs; half a pair of surrogates is left out. */
export function cutRuns(runs: readonly Run[], limit = SHOWN_CHARACTERS): { runs: Run[]; cut: number } {
  const kept: Run[] = [];
  let room = limit;
  let cut = 0;
  for (const run of runs) {
    if (run.text.length <= room) {
      kept.push(run);
      room -= run.text.length;
      continue;
    }
    const end = room > 0 && isHighSurrogate(run.text.charCodeAt(room - 1)) ? room - 1 : room;
    if (end > 0) kept.push({ ...run, text: run.text.slice(0, end) });
    cut += run.text.length - end;
    room = 0;
  }
  return { runs: kept, cut };
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** The bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800 || (code >= 0xd800 && code <= 0xdfff)) bytes += 2;
    else bytes += 3;
  }
  return bytes;
}

/** A span of characters. */
export interface Span {
  from: number;
  to: number;
}

/** Runs divided at the ends of spans, each with whether it is within one. Spans ascend and do not overlap. */
export function markRuns(runs: readonly Run[], spans: readonly Span[]): (Run & { hit: boolean })[] {
  const marked: (Run & { hit: boolean })[] = [];
  let at = 0;
  let next = 0;
  for (const run of runs) {
    let done = 0;
    while (done < run.text.length) {
      while ((spans[next]?.to ?? Number.POSITIVE_INFINITY) <= at) next += 1;
      const span = spans[next];
      const hit = span !== undefined && span.from <= at;
      const end = span === undefined ? Number.POSITIVE_INFINITY : hit ? span.to : span.from;
      const length = Math.min(run.text.length - done, end - at);
      marked.push({ ...run, text: run.text.slice(done, done + length), hit });
      done += length;
      at += length;
    }
  }
  return marked;
}

/** Where a plain text is found in another. */
export function findPlain(text: string, wanted: string, matchCase: boolean): Span[] {
  if (wanted === '') return [];
  const within = matchCase ? text : text.toLowerCase();
  const what = matchCase ? wanted : wanted.toLowerCase();
  // A letter whose lower case is longer moves what follows: such a text is not marked.
  if (within.length !== text.length) return [];
  const spans: Span[] = [];
  for (let at = within.indexOf(what); at >= 0; at = within.indexOf(what, at + what.length)) {
    spans.push({ from: at, to: at + what.length });
  }
  return spans;
}
