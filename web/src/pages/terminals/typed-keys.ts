/** What keys send to a terminal; pure. */

/** Bytes of one message to the daemon. */
const MESSAGE_BYTES = 32 * 1024;

export type ExtraKey = 'escape' | 'tab' | 'up' | 'down' | 'left' | 'right' | 'home' | 'end';

const PLAIN: Record<ExtraKey, string> = {
  escape: '\x1b',
  tab: '\t',
  up: '\x1b[A',
  down: '\x1b[B',
  right: '\x1b[C',
  left: '\x1b[D',
  home: '\x1b[H',
  end: '\x1b[F',
};

/** What a key of the row under a terminal sends. `application`: the program asked for the keys of an application. */
export function extraKey(key: ExtraKey, application: boolean): string {
  const plain = PLAIN[key];
  return application && plain.startsWith('\x1b[') ? `\x1bO${plain.slice(2)}` : plain;
}

/** What Ctrl makes of a sign that was typed; the sign itself where Ctrl makes nothing of it. */
export function withCtrl(sign: string): string {
  if (sign.length !== 1) return sign;
  if (sign === '?') return '\x7f';
  if (sign === ' ') return '\x00';
  const code = sign.toUpperCase().charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : sign;
}

/** Bytes in messages that the daemon takes. */
export function* messages(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) yield bytes.subarray(at, at + MESSAGE_BYTES);
}

/**
 * Whether a text is a reply of the emulator to a query of the program, and nothing that a person typed: where the
 * cursor is, what kind of terminal this is, its colours.
 */
export function isReply(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control sequences begin with a control character
  return /^\x1b(?:\[[?>]?\d*(?:;\d+)*(?:[cnR]|\$y)|[\]P].*)$/s.test(text);
}

/** What a key does in a terminal that is watched. */
export type WatchedKey = 'pass' | 'explain' | 'page_up' | 'page_down' | 'top' | 'bottom';

type Press = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>;

const WATCHED: Record<string, WatchedKey> = {
  PageUp: 'page_up',
  PageDown: 'page_down',
  Home: 'top',
  End: 'bottom',
  Enter: 'explain',
  Backspace: 'explain',
  Delete: 'explain',
  ArrowUp: 'explain',
  ArrowDown: 'explain',
  ArrowLeft: 'explain',
  ArrowRight: 'explain',
};

/** Keys by which a writer interrupts, ends and stops a program. */
const CONTROLS = ['c', 'd', 'z'];

/** Keys of the page and of the browser pass; those that a writer would type are explained. */
export function watchedKey(press: Press, hasSelection: boolean): WatchedKey {
  if (press.ctrlKey && CONTROLS.includes(press.key) && !hasSelection) return 'explain';
  if (press.ctrlKey || press.metaKey || press.altKey) return 'pass';
  if (press.key.length === 1) return 'explain';
  return WATCHED[press.key] ?? 'pass';
}

/** An address that a terminal may open; `null` for every other. */
export function webAddress(text: string): string | null {
  try {
    const url = new URL(text);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
  } catch {
    return null;
  }
}
