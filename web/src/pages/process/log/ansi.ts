/**
 * Control sequences of terminals in one line, as runs of text in a style. Colours, emphasis and hyperlinks are kept;
 * everything else is left out and counted. Nothing here makes markup: a run is text.
 */

/** A colour of the palette (0 to 15), or one of its own as `#rrggbb`. */
export type Colour = number | string;

export interface Style {
  foreground?: Colour;
  background?: Colour;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Run {
  text: string;
  style: Style | null;
  /** The address of a hyperlink (OSC 8): http or https, nothing else. */
  link?: string;
}

export interface ParsedLine {
  runs: Run[];
  /** The text without control sequences. */
  text: string;
  /** Sequences that were left out. */
  dropped: number;
}

/** CSI with its parameters, OSC with its command, other strings, short sequences, and one that does not end. */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b\]|\x9d)([^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)|(?:\x1b[P^_X]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ\\`-~]|[\x1b\x80-\x9f][\s\S]*?$/g;
/** A longer address is no link. */
const ADDRESS_LIMIT = 2_083;

export function parseLine(line: string): ParsedLine {
  if (!hasSequence(line)) {
    return { runs: line === '' ? [] : [{ text: line, style: null }], text: line, dropped: 0 };
  }
  const runs: Run[] = [];
  let style: Style | null = null;
  let link: string | undefined;
  let dropped = 0;
  let end = 0;
  const add = (text: string) => {
    if (text === '') return;
    runs.push(link === undefined ? { text, style } : { text, style, link });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(end, match.index));
    end = match.index + match[0].length;
    const [, parameters, final, command] = match;
    if (final === 'm' && parameters !== undefined && /^[\d;:]*$/.test(parameters))
      style = withParameters(style, parameters);
    else if (command?.startsWith('8;')) link = linkAddress(command);
    else dropped += 1;
  }
  add(line.slice(end));
  return { runs, text: runs.map((run) => run.text).join(''), dropped };
}

function hasSequence(line: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[\x1b\x80-\x9f]/.test(line);
}

/** The address in `8;parameters;address`; none for the end of a link and for any other scheme. */
function linkAddress(command: string): string | undefined {
  const address = command.slice(command.indexOf(';', 2) + 1);
  return command.indexOf(';', 2) < 0 ? undefined : webAddress(address);
}

/** The address, where it is one of the web; nothing else is ever made a link. */
export function webAddress(address: string): string | undefined {
  if (address.length > ADDRESS_LIMIT) return undefined;
  try {
    const url = new URL(address);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** SGR parameters, applied in their order (ECMA-48, 8.3.117; ITU-T T.416 for colours). */
function withParameters(before: Style | null, parameters: string): Style | null {
  const groups = parameters.split(';');
  let style: Style = { ...before };
  for (let index = 0; index < groups.length; index += 1) {
    // Colons separate the parts of one parameter; programs often take semicolons for colours, too.
    const [code = 0, ...parts] = (groups[index] ?? '').split(':').map(Number);
    if (code === 38 || code === 48) {
      const hasColons = parts.length > 0;
      const codes = hasColons ? parts : groups.slice(index + 1).map(Number);
      const [colour, used] = extendedColour(codes, hasColons);
      if (!hasColons) index += used;
      style = withColour(style, code === 38 ? 'foreground' : 'background', colour);
    } else {
      style = withCode(style, code === 4 && parts[0] === 0 ? 24 : code);
    }
  }
  return Object.keys(style).length === 0 ? null : style;
}

function withColour(style: Style, part: 'foreground' | 'background', colour: Colour | undefined): Style {
  return colour === undefined ? style : { ...style, [part]: colour };
}

const ON: Record<number, keyof Style> = {
  1: 'bold',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'strike',
  21: 'underline',
};
const OFF: Record<number, (keyof Style)[]> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['strike'],
  39: ['foreground'],
  49: ['background'],
};

function withCode(style: Style, code: number): Style {
  if (code === 0) return {};
  const on = ON[code];
  if (on !== undefined) return { ...style, [on]: true };
  const off = OFF[code];
  if (off !== undefined) {
    const rest = { ...style };
    for (const name of off) delete rest[name];
    return rest;
  }
  if (code >= 30 && code <= 37) return { ...style, foreground: code - 30 };
  if (code >= 90 && code <= 97) return { ...style, foreground: code - 90 + 8 };
  if (code >= 40 && code <= 47) return { ...style, background: code - 40 };
  if (code >= 100 && code <= 107) return { ...style, background: code - 100 + 8 };
  return style;
}

/** The colour of `5;n` or `2;r;g;b`, and how many of these codes it takes. */
function extendedColour(codes: number[], colons: boolean): [Colour | undefined, number] {
  if (codes[0] === 5) return [indexedColour(codes[1] ?? 0), 2];
  if (codes[0] !== 2) return [undefined, 0];
  // With colons, there may be a colour space before the parts.
  const skip = colons && codes.length > 4 ? 1 : 0;
  const [red, green, blue] = codes.slice(1 + skip, 4 + skip);
  if (red === undefined || green === undefined || blue === undefined) return [undefined, codes.length];
  return [hex(red, green, blue), 4 + skip];
}

/** The colours of the 256: the palette, a cube of 6 × 6 × 6, and 24 greys. */
function indexedColour(index: number): Colour | undefined {
  if (index < 16) return index;
  if (index > 255) return undefined;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return hex(grey, grey, grey);
  }
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return hex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function hex(...parts: number[]): string {
  return `#${parts.map((part) => Math.min(255, part).toString(16).padStart(2, '0')).join('')}`;
}
