/** The marks that a shell puts around its prompts and commands (OSC 133); pure. */

export type ShellMark =
  /** A prompt begins; `continuation` for one that asks for more of a command. */
  | { kind: 'prompt'; continuation: boolean }
  /** The prompt ends, and the command is typed. */
  | { kind: 'input' }
  /** The command starts; what follows is its output. */
  | { kind: 'output' }
  /** The command ended; `null` for a shell that does not tell how. */
  | { kind: 'end'; status: number | null };

/** The mark in the text after `133;`; `null` for what is none. */
export function parseShellMark(data: string): ShellMark | null {
  const [letter, ...fields] = data.split(';');
  switch (letter) {
    case 'A':
      return { kind: 'prompt', continuation: fields.includes('k=s') };
    case 'B':
      return { kind: 'input' };
    case 'C':
      return { kind: 'output' };
    case 'D': {
      const given = fields[0] ?? '';
      return { kind: 'end', status: /^-?\d+$/.test(given) ? Number(given) : null };
    }
    default:
      return null;
  }
}

/**
 * The command before or after the one that is chosen, by its id; the last one where none is. `undefined` at the
 * end of the list.
 */
export function neighbour(
  commands: readonly { id: number }[],
  chosen: number | null,
  direction: 'previous' | 'next',
): number | undefined {
  const at = commands.findIndex((command) => command.id === chosen);
  if (at < 0) return direction === 'previous' ? commands.at(-1)?.id : undefined;
  return commands[direction === 'previous' ? at - 1 : at + 1]?.id;
}

/**
 * Where rows went when a screen was painted anew: for each of `before`, its index in `after`, or `null`. Both are
 * compared from the end, because that is where a terminal is written.
 */
export function followRows(before: readonly string[], after: readonly string[]): (number | null)[] {
  const found: (number | null)[] = before.map(() => null);
  let limit = after.length;
  for (let index = before.length - 1; index >= 0; index -= 1) {
    const text = before[index] ?? '';
    if (text === '') continue;
    const at = after.lastIndexOf(text, limit - 1);
    if (limit > 0 && at >= 0) {
      found[index] = at;
      limit = at;
    }
  }
  return found;
}
