/** A command line, split for display: the program stands out. */

export interface CommandParts {
  program: string;
  rest: string;
}

/** The first word, quoted or not, and what follows it. */
export function splitCommand(command: string): CommandParts {
  const text = command.trimStart();
  const match = /^('[^']*'|"(?:[^"\\]|\\.)*"|\S+)(\s[\s\S]*)?$/.exec(text);
  if (!match) return { program: text, rest: '' };
  return { program: match[1] ?? '', rest: match[2] ?? '' };
}

/** At most so many characters, the last one `…` where some are left out; never half a character. */
export function truncate(text: string, limit: number): string {
  const characters = Array.from(text);
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join('')}…`;
}

/** A command where there is little room: its program without directories, and as much of the rest as fits. */
export function shortCommand(command: string, limit: number): CommandParts {
  const { program, rest } = splitCommand(command);
  const name = /^['"]/.test(program) ? program : (program.split('/').at(-1) ?? program);
  const room = limit - Array.from(name).length;
  return { program: truncate(name, limit), rest: room > 1 ? truncate(rest, room) : '' };
}
