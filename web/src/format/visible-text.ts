/**
 * Text of commands, files and people as it is shown: characters that show nothing, or that reorder what stands around
 * them, are written as `\u{202e}`. Where something is escaped, backslashes are doubled, so that no escape is ambiguous;
 * all else stays as it is, and so does what was escaped already. Pure.
 */
import { byteArray } from '../api/bytes';
import type { ByteString } from '../api/types';

/** As the daemon has it (`visible()` of the crate `ostler-model`), line ends and tabs excepted. */
const HIDDEN =
  '(?![\\n\\t])\\p{Cc}|[\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180e}\\u{200b}\\u{200e}\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{3164}\\u{feff}\\u{ffa0}\\u{fff9}-\\u{fffb}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e007f}]';
/** What shapes its neighbours in some scripts and in emoji. */
const JOINER = '[\\u{200c}\\u{200d}]';
/** A joiner that has nothing to join. */
const IDLE_JOINER = `(?<![^\\p{ASCII}\\p{C}\\p{Z}])${JOINER}|${JOINER}(?![^\\p{ASCII}\\p{C}\\p{Z}])`;

const IN_CODE = new RegExp(`${HIDDEN}|${JOINER}`, 'gu');
const IN_LINES = new RegExp(`${HIDDEN}|${JOINER}|[\\n\\t]`, 'gu');
const IN_PROSE = new RegExp(`${HIDDEN}|${IDLE_JOINER}`, 'gu');
/** Without the marks that dates and numbers of some languages have. */
const IN_PARTS = /(?![\n\t])\p{Cc}|[\u{200b}\u{202a}-\u{202e}\u{2060}-\u{2069}\u{feff}]/gu;

/** A command, which may have several lines. */
export function visibleCode(text: string): string {
  return escapeHidden(text, IN_CODE);
}

/** A path or a name: on one line. */
export function visibleLine(text: string): string {
  return escapeHidden(text, IN_LINES);
}

/** What a person or a program says: joiners stay within words and emoji. */
export function visibleText(text: string): string {
  return escapeHidden(text, IN_PROSE);
}

/** A part of a message, which may be text of the page itself: only what reorders others, or shows nothing anywhere. */
export function visiblePart(text: string): string {
  return escapeHidden(text, IN_PARTS);
}

/** A path; bytes that are not UTF-8 are written as `\xff`. */
export function visiblePath(path: ByteString | null | undefined): string {
  if (path === null || path === undefined) return '';
  if (typeof path === 'string') return visibleLine(path);
  const bytes = byteArray(path);
  let shown = '';
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at);
    shown +=
      character === null
        ? `\\x${bytes[at]?.toString(16).padStart(2, '0')}`
        : visibleLine(character).replace(/^\\$/, '\\\\');
    at += character === null ? 1 : new TextEncoder().encode(character).length;
  }
  return shown;
}

/** The character that begins there; `null` where none does. */
function characterAt(bytes: Uint8Array, at: number): string | null {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length += 1) {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
        bytes.subarray(at, at + length),
      );
    } catch {
      // It may be longer.
    }
  }
  return null;
}

function escapeHidden(text: string, hidden: RegExp): string {
  if (text.search(hidden) < 0) return text;
  let shown = '';
  let rest = 0;
  for (const { 0: character, index } of text.matchAll(hidden)) {
    shown += text.slice(rest, index).replaceAll('\\', '\\\\');
    shown += `\\u{${character.codePointAt(0)?.toString(16)}}`;
    rest = index + character.length;
  }
  return shown + text.slice(rest).replaceAll('\\', '\\\\');
}
