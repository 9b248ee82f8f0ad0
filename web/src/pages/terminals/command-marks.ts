/** The commands of a shell in a terminal's lines, by the marks that the shell writes. */
import type { IBufferLine, IMarker, Terminal } from '@xterm/xterm';
import { followRows, parseShellMark, type ShellMark } from './osc133';

/** Commands that are kept. */
const KEPT = 1_000;

interface Command {
  id: number;
  prompt: IMarker;
  /** Where its output begins; absent until it runs. */
  output: IMarker | null;
  end: IMarker | null;
  /** The column at its end: output without a newline shares its last line with the next prompt. */
  endColumn: number;
  ended: boolean;
  status: number | null;
  startedAt: number | null;
  durationMs: number | null;
}

/** A command as it is drawn beside its line. */
export interface CommandMark {
  id: number;
  line: number;
  state: 'running' | 'ended';
  status: number | null;
  /** Known only where the command ran while this page watched. */
  durationMs: number | null;
}

export class CommandMarks {
  #commands: Command[] = [];
  #open: Command | null = null;
  #nextId = 1;
  readonly #terminal: Terminal;
  /** Whether what arrives is happening now, so that durations can be taken. */
  live = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.parser.registerOscHandler(133, (data) => {
      const mark = parseShellMark(data);
      if (mark && terminal.buffer.active.type === 'normal') this.#apply(mark);
      return true;
    });
  }

  /** Those that ran, in the order of their lines. */
  list(): CommandMark[] {
    return this.#commands
      .filter((command) => !command.prompt.isDisposed && command.output !== null)
      .map((command) => ({
        id: command.id,
        line: command.prompt.line,
        state: command.ended ? 'ended' : 'running',
        status: command.status,
        durationMs: command.durationMs,
      }));
  }

  /** The output of a command, as text; what was scrolled out of memory is missing. */
  outputOf(id: number): string | null {
    const command = this.#commands.find((known) => known.id === id);
    if (!command?.output) return null;
    const buffer = this.#terminal.buffer.normal;
    const from = command.output.isDisposed ? 0 : command.output.line;
    const end = command.end && !command.end.isDisposed ? command.end.line : null;
    const lines: IBufferLine[] = [];
    for (let line = from; line < (end ?? buffer.length); line += 1) {
      const found = buffer.getLine(line);
      if (found) lines.push(found);
    }
    const last = end === null || command.endColumn === 0 ? undefined : buffer.getLine(end);
    return joinLines(lines, last?.translateToString(true, 0, command.endColumn), last?.isWrapped);
  }

  /** Runs `paint`, which draws the visible rows anew, and finds the commands in them again. */
  async keepAcross(paint: () => Promise<void>): Promise<void> {
    const before = this.#visibleRows();
    const base = this.#terminal.buffer.normal.baseY;
    const places = this.#commands.map((command) => ({
      command,
      prompt: rowOf(command.prompt, base),
      output: rowOf(command.output, base),
      end: rowOf(command.end, base),
    }));
    await paint();
    const moved = followRows(before, this.#visibleRows());
    for (const { command, prompt, output, end } of places) {
      const row = prompt === null ? null : (moved[prompt] ?? null);
      if (row === null || prompt === null) continue;
      command.prompt = this.#markRow(row) ?? command.prompt;
      if (output !== null) command.output = this.#markRow(row + output - prompt);
      if (end !== null) command.end = this.#markRow(row + end - prompt);
    }
  }

  #apply(mark: ShellMark): void {
    if (mark.kind === 'prompt') this.#atPrompt(mark.continuation);
    else if (mark.kind === 'output') this.#atOutput();
    else if (mark.kind === 'end') this.#atEnd(mark.status);
  }

  #atPrompt(continuation: boolean): void {
    if (continuation) return;
    this.#atEnd(null);
    const open = this.#open;
    // A prompt that is drawn again is the same one.
    if (open && open.output === null) {
      open.prompt.dispose();
      open.prompt = this.#terminal.registerMarker(0);
      return;
    }
    this.#open = {
      id: this.#nextId++,
      prompt: this.#terminal.registerMarker(0),
      output: null,
      end: null,
      endColumn: 0,
      ended: false,
      status: null,
      startedAt: null,
      durationMs: null,
    };
    this.#commands.push(this.#open);
    while (this.#commands.length > KEPT) this.#commands.shift()?.prompt.dispose();
  }

  #atOutput(): void {
    if (!this.#open || this.#open.output !== null) return;
    this.#open.output = this.#terminal.registerMarker(0);
    this.#open.startedAt = this.live ? performance.now() : null;
  }

  #atEnd(status: number | null): void {
    const open = this.#open;
    if (!open || open.output === null) return;
    open.status ??= status;
    if (!open.ended) {
      open.ended = true;
      open.end = this.#terminal.registerMarker(0);
      open.endColumn = this.#terminal.buffer.active.cursorX;
      if (open.startedAt !== null) open.durationMs = performance.now() - open.startedAt;
    }
    this.#open = null;
  }

  #visibleRows(): string[] {
    const buffer = this.#terminal.buffer.normal;
    return Array.from(
      { length: this.#terminal.rows },
      (_, row) =>
        buffer
          .getLine(buffer.baseY + row)
          ?.translateToString(true)
          .trimEnd() ?? '',
    );
  }

  #markRow(row: number): IMarker | null {
    const buffer = this.#terminal.buffer.normal;
    if (this.#terminal.buffer.active.type !== 'normal' || row < 0 || row >= this.#terminal.rows) return null;
    return this.#terminal.registerMarker(row - buffer.cursorY);
  }
}

/** The row of a marker on the screen; `null` where it is above it. */
function rowOf(marker: IMarker | null, base: number): number | null {
  return marker && !marker.isDisposed && marker.line >= base ? marker.line - base : null;
}

/** The text of lines, those that were wrapped in one; `last` is a part of one more. */
function joinLines(lines: readonly IBufferLine[], last?: string, lastIsWrapped = false): string {
  let text = '';
  for (const [index, line] of lines.entries()) {
    const next = lines[index + 1];
    const goesOn = next ? next.isWrapped : last !== undefined && lastIsWrapped;
    // A screen that was painted has blanks up to its edge.
    text += goesOn ? line.translateToString(false) : `${line.translateToString(true).trimEnd()}\n`;
  }
  return text.replace(/\n+$/, '\n') + (last ?? '');
}
