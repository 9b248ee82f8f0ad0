/**
 * The lines that the viewer has read: pieces of the numbers of which all lines are known, the least lately used of
 * which are forgotten. A number without a line in such a piece has none: it is gone, or the filter leaves it out.
 */
import { type LogLine, lineSize } from './line';

interface Piece {
  from: number;
  to: number;
  /** Ascending. */
  lines: LogLine[];
  bytes: number;
  used: number;
}

/** The next line in a direction; or the number at which it is not known; `null` at the end. */
export type Neighbour = { line: LogLine } | { unknown: number } | null;

export interface StoreLimits {
  pieces: number;
  /** Lines up to which neighbouring pieces are joined. */
  pieceLines: number;
  bytes: number;
}

const LIMITS: StoreLimits = { pieces: 64, pieceLines: 256, bytes: 16 * 1024 * 1024 };

export class LineStore {
  #pieces: Piece[] = [];
  #bytes = 0;
  #clock = 0;

  constructor(private readonly limits: StoreLimits = LIMITS) {}

  /** About how much memory the lines take, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get pieces(): number {
    return this.#pieces.length;
  }

  clear(): void {
    this.#pieces = [];
    this.#bytes = 0;
  }

  isKnown(number: number): boolean {
    return this.#pieceOf(number) !== undefined;
  }

  /** The line of a number; `null` where there is none, `undefined` where that is not known. */
  get(number: number): LogLine | null | undefined {
    const piece = this.#pieceOf(number);
    if (!piece) return undefined;
    const line = piece.lines[indexFrom(piece.lines, number)];
    return line?.number === number ? line : null;
  }

  /** The first line from `number` on, up to `last`. */
  atOrAfter(number: number, last: number): Neighbour {
    let at = number;
    while (at <= last) {
      const piece = this.#pieceOf(at);
      if (!piece) return { unknown: at };
      const line = piece.lines[indexFrom(piece.lines, at)];
      if (line) return line.number <= last ? { line } : null;
      at = piece.to + 1;
    }
    return null;
  }

  /** The last line up to `number`, not before `first`. */
  atOrBefore(number: number, first: number): Neighbour {
    let at = number;
    while (at >= first) {
      const piece = this.#pieceOf(at);
      if (!piece) return { unknown: at };
      const line = piece.lines[indexFrom(piece.lines, at + 1) - 1];
      if (line) return line.number >= first ? { line } : null;
      at = piece.from - 1;
    }
    return null;
  }

  /** Takes all lines of the numbers `from` to `to`. What is known already is left as it is: lines never change. */
  insert(from: number, to: number, lines: readonly LogLine[]): void {
    let at = from;
    while (at <= to) {
      const known = this.#pieces[this.#indexFrom(at)];
      if (known && known.from <= at) {
        at = known.to + 1;
        continue;
      }
      const end = Math.min(to, (known?.from ?? Number.POSITIVE_INFINITY) - 1);
      const part = lines.filter((line) => line.number >= at && line.number <= end);
      this.#add({ from: at, to: end, lines: part, bytes: sum(part), used: this.#tick() });
      at = end + 1;
    }
    this.#forget();
  }

  #tick(): number {
    this.#clock += 1;
    return this.#clock;
  }

  #add(piece: Piece): void {
    const index = this.#indexFrom(piece.from);
    this.#pieces.splice(index, 0, piece);
    this.#bytes += piece.bytes;
    this.#join(index);
    this.#join(index - 1);
  }

  /** Joins a piece with the one after it, where they are small. */
  #join(index: number): void {
    const left = this.#pieces[index];
    const right = this.#pieces[index + 1];
    if (!left || !right || left.to + 1 !== right.from) return;
    if (left.lines.length + right.lines.length > this.limits.pieceLines) return;
    this.#pieces.splice(index, 2, {
      from: left.from,
      to: right.to,
      lines: [...left.lines, ...right.lines],
      bytes: left.bytes + right.bytes,
      used: Math.max(left.used, right.used),
    });
  }

  #forget(): void {
    const { pieces, bytes } = this.limits;
    while (this.#pieces.length > 1 && (this.#pieces.length > pieces || this.#bytes > bytes)) {
      let oldest = 0;
      for (const [index, piece] of this.#pieces.entries()) {
        if (piece.used < (this.#pieces[oldest]?.used ?? 0)) oldest = index;
      }
      const [gone] = this.#pieces.splice(oldest, 1);
      this.#bytes -= gone?.bytes ?? 0;
    }
  }

  #pieceOf(number: number): Piece | undefined {
    const piece = this.#pieces[this.#indexFrom(number)];
    if (!piece || piece.from > number) return undefined;
    piece.used = this.#tick();
    return piece;
  }

  /** The index of the first piece that does not end before `number`. */
  #indexFrom(number: number): number {
    let low = 0;
    let high = this.#pieces.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pieces[middle]?.to ?? 0) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The index of the first line that is not before `number`. */
function indexFrom(lines: readonly LogLine[], number: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.number ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function sum(lines: readonly LogLine[]): number {
  return lines.reduce((total, line) => total + lineSize(line), 0);
}
