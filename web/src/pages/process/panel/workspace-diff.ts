/** The diff of one path of an overlay; pure. */
import { byteArray } from '../../../api/bytes';
import type { ByteString } from '../../../api/types';

/** The longest diff that is asked for where only a part of it is shown; the limit of REST. */
const LIMIT_BYTES = 8 * 1024 * 1024;
const SLASH = 0x2f;

export interface Diff {
  diff: string;
  truncated: boolean;
}

/**
 * What REST is asked for: the path itself, and all of them for `null`. A path that is not UTF-8 cannot stand in a query
 * string; the nearest directory above it that can is asked for in its place.
 */
export function diffQuery(path: ByteString | null): { path?: string[]; limit_bytes?: number } {
  if (path === null) return {};
  if (typeof path === 'string') return { path: [path] };
  const above = directoryAbove(byteArray(path));
  return { limit_bytes: LIMIT_BYTES, ...(above === '' ? {} : { path: [above] }) };
}

/** The part of an answer to `diffQuery` that is about the path. */
export function diffOfPath({ diff, truncated }: Diff, path: ByteString | null): Diff {
  if (path === null || typeof path === 'string') return { diff, truncated };
  const bytes = byteArray(path);
  const head = `diff --git ${gitName('a/', bytes)} ${gitName('b/', bytes)}\n`;
  // No line of a file begins with a letter in a diff.
  const parts = diff.split(/^(?=diff --git )/m);
  const at = parts.findIndex((part) => part.startsWith(head));
  return { diff: parts[at] ?? '', truncated: truncated && (at < 0 || at === parts.length - 1) };
}

/** The directories of a path up to the first that is not UTF-8. */
function directoryAbove(path: Uint8Array): string {
  for (let at = path.lastIndexOf(SLASH); at > 0; at = path.lastIndexOf(SLASH, at - 1)) {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(path.subarray(0, at));
    } catch {
      // One above it may be.
    }
  }
  return '';
}

const QUOTED: Record<string, string> = { '\n': '\\n', '\t': '\\t', '"': '\\"', '\\': '\\\\' };

/** A path that is not UTF-8 as git quotes it. */
function gitName(side: string, path: Uint8Array): string {
  const quoted = Array.from(path, (byte) => {
    const character = String.fromCharCode(byte);
    const plain = byte >= 0x20 && byte <= 0x7e ? character : `\\${byte.toString(8).padStart(3, '0')}`;
    return QUOTED[character] ?? plain;
  });
  return `"${side}${quoted.join('')}"`;
}
