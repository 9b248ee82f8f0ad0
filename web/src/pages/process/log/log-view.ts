/**
 * The window on the output: only the rows in view are elements. Its truth is a line and where that stands; the
 * scrollbar follows. Rows are laid out from there, so that nothing moves when others are read, wrapped or appended.
 */
import type { LogLine } from './line';
import type { LogSource, Need } from './log-source';
import { RowList, type RowOptions } from './row-list';
import { type MarkTexts, rowsAround, walk } from './row-specs';
import { type Anchor, anchorAt, type Extent, isJump, placeRows, scrollTopOf, spacerHeight } from './window';

export interface ViewElements {
  scroller: HTMLElement;
  /** Makes the scrollbar. */
  spacer: HTMLElement;
  /** What stays in view. */
  pane: HTMLElement;
  rows: HTMLElement;
}

export interface ViewOptions extends RowOptions, MarkTexts {
  rowHeight: number;
  wraps: boolean;
}

/** What is seen. */
export interface ViewPosition {
  /** The first and the last line in view; `null` where it is not read. */
  top: LogLine | null;
  bottom: LogLine | null;
  topPosition: number;
  bottomPosition: number;
  isAtEnd: boolean;
  /** Whether the thumb is dragged. */
  isJumping: boolean;
}

export interface ViewHandlers {
  onmove(position: ViewPosition): void;
  /** The person scrolls up. */
  onleave(): void;
  /** The person scrolled down to the last line. */
  onreachend(): void;
}

/** Rows beyond the window on each side. */
const OVERSCAN = 5;
/** Rows that are read beforehand, in the direction of travel and against it. */
const AHEAD = 200;
const BEHIND = 60;
/** A thumb rests when it has not moved for so long, in milliseconds. */
const REST_MS = 50;
/** A scroll has ended when nothing has moved for so long, in milliseconds. */
const SETTLED_MS = 150;
/** Attempts to fill the window from rows whose heights are seen only when they are laid out. */
const ROUNDS = 5;

export class LogView {
  /** Whether the end stays in view. */
  follows = true;
  position: ViewPosition;
  /** Called after rows were changed. */
  onrendered: (() => void) | null = null;

  readonly list: RowList;
  #anchor: Anchor = { line: 1, px: 0 };
  #top = 0;
  #height: number;
  #widest = 0;
  #expectedTop = 0;
  /** The last line that the scrollbar stands for. */
  #spacerLast = 0;
  #direction: 1 | -1 = 1;
  #isJumping = false;
  #isScrolling = false;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  readonly #resize: ResizeObserver;

  constructor(
    private readonly elements: ViewElements,
    private readonly source: LogSource,
    private options: ViewOptions,
    private readonly handlers: ViewHandlers,
  ) {
    this.list = new RowList(elements.rows);
    this.position = this.#seen();
    this.#height = elements.scroller.clientHeight;
    this.#resize = new ResizeObserver(() => this.#onresize());
    this.#resize.observe(elements.scroller);
    elements.scroller.addEventListener('scroll', this.#onscroll, { passive: true });
  }

  destroy(): void {
    this.#resize.disconnect();
    this.elements.scroller.removeEventListener('scroll', this.#onscroll);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settle);
    clearTimeout(this.#rest);
  }

  /** Rows that fit. */
  get capacity(): number {
    return Math.ceil(this.#height / this.options.rowHeight);
  }

  get #extent(): Extent {
    const { first, last } = this.source;
    const { rowHeight, hasCursor } = this.options;
    return { first, last, rowHeight, viewHeight: this.#height, tailHeight: hasCursor ? rowHeight : 0 };
  }

  setOptions(options: ViewOptions): void {
    if (options.wraps !== this.options.wraps || options.rowHeight !== this.options.rowHeight)
      this.#widest = 0;
    this.options = options;
    this.schedule();
  }

  /** Shows other lines, after a filter or a time range was changed. The line in view stays, or its neighbour. */
  reset(): void {
    this.#widest = 0;
    this.schedule();
  }

  schedule(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.render();
    });
  }

  // Movement

  scrollBy(px: number): void {
    if (px < 0) this.handlers.onleave();
    this.#moveBy(px);
    this.#syncScrollbar();
    if (px > 0 && this.position.isAtEnd) this.handlers.onreachend();
  }

  toStart(): void {
    this.#goTo({ line: this.source.first, px: 0 });
  }

  toEnd(): void {
    this.#goTo({ line: this.source.last, px: Number.POSITIVE_INFINITY });
  }

  /** Shows a line in the middle of the view; with `lazily`, only where it is not in view already. */
  toLine(line: number, lazily = false): void {
    if (lazily && this.#isInView(line)) return;
    const { rowHeight } = this.options;
    const rows = Math.max(0, Math.floor((this.#height / rowHeight - 1) / 2));
    this.#goTo({ line, px: rows * rowHeight });
  }

  #isInView(line: number): boolean {
    const row = this.list.elementOf(`l${line}`);
    if (!row) return false;
    const top = this.#top + row.offsetTop;
    return top >= 0 && top + row.offsetHeight <= this.#height;
  }

  #goTo(anchor: Anchor): void {
    this.#direction = anchor.line < this.#anchor.line ? -1 : 1;
    this.#anchor = anchor;
    this.#isJumping = false;
    this.#isScrolling = false;
    this.render();
  }

  #moveBy(px: number): void {
    this.#direction = px < 0 ? -1 : 1;
    this.#anchor = { line: this.#anchor.line, px: this.#anchor.px - px };
    this.render();
  }

  readonly #onscroll = (): void => {
    const top = this.elements.scroller.scrollTop;
    const distance = top - this.#expectedTop;
    if (Math.abs(distance) < 1) return;
    const lastShown = this.#spacerLast;
    this.#expectedTop = top;
    this.#isScrolling = true;
    if (distance < 0) this.handlers.onleave();
    if (isJump(this.#extent, distance)) {
      this.#direction = distance < 0 ? -1 : 1;
      this.#isJumping = true;
      // There may be more now than the scrollbar stands for: its end is the end.
      const isEnd = distance > 0 && top >= this.#most - 1;
      this.#anchor = isEnd
        ? { line: this.source.last, px: Number.POSITIVE_INFINITY }
        : anchorAt(this.#extent, top);
      this.render();
    } else {
      this.#moveBy(distance);
    }
    // What has come during the scroll does not count: the end was reached as it stood.
    if (distance > 0 && (this.position.isAtEnd || this.position.bottomPosition >= lastShown)) {
      this.handlers.onreachend();
    }
    this.#keepFromEdges(top);
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => this.#onsettled(), SETTLED_MS);
  };

  /** The last scroll position. */
  get #most(): number {
    return this.elements.scroller.scrollHeight - this.#height;
  }

  /** The scrollbar must not end before the lines do. */
  #keepFromEdges(top: number): void {
    const { topPosition, isAtEnd } = this.position;
    const isStuck = (top <= 0 && topPosition > this.source.first) || (top >= this.#most - 1 && !isAtEnd);
    if (isStuck && !this.#isJumping) this.#syncScrollbar();
  }

  #onsettled(): void {
    this.#isScrolling = false;
    this.#isJumping = false;
    this.render();
  }

  #onresize(): void {
    const height = this.elements.scroller.clientHeight;
    if (height === 0) return;
    this.#height = height;
    this.schedule();
  }

  /** Makes the scrollbar stand for all lines that there are now. */
  #setSpacer(): void {
    this.#spacerLast = this.source.last;
    this.elements.spacer.style.height = `${spacerHeight(this.#extent)}px`;
  }

  /** Puts the scrollbar where the anchor is. */
  #syncScrollbar(): void {
    const { scroller } = this.elements;
    const extent = this.#extent;
    this.#setSpacer();
    const { topPosition, isAtEnd } = this.position;
    const isAtStart = topPosition <= extent.first && this.#top >= 0;
    const most = spacerHeight(extent) - this.#height;
    const top = isAtEnd ? most : isAtStart ? 0 : scrollTopOf(extent, this.#anchor);
    if (Math.abs(scroller.scrollTop - top) >= 1) scroller.scrollTop = top;
    this.#expectedTop = scroller.scrollTop;
  }

  // Rows

  /** Draws what is in view. */
  render(): void {
    if (this.#height === 0) return;
    if (this.follows) this.#anchor = { line: this.source.last, px: Number.POSITIVE_INFINITY };
    this.elements.pane.style.height = `${this.#height}px`;
    this.#fill();
    this.#updateWidth();
    this.position = this.#seen();
    this.#readAhead();
    if (this.#isScrolling && !this.follows)
      this.elements.spacer.style.height = `${spacerHeight(this.#extent)}px`;
    else this.#syncScrollbar();
    this.handlers.onmove(this.position);
    this.onrendered?.();
  }

  /** Lays rows out around the anchor until the window is full. An anchor below everything means the end. */
  #fill(): void {
    const { rowHeight } = this.options;
    const { line, px } = this.#anchor;
    const isEnd = px === Number.POSITIVE_INFINITY;
    const rowsFor = (height: number) => Math.max(0, Math.ceil(height / rowHeight)) + OVERSCAN;
    let above = rowsFor(isEnd ? this.#height : px);
    let below = rowsFor(isEnd ? 0 : this.#height - px);
    for (let round = 1; ; round += 1) {
      const found = rowsAround(this.source, this.options, line, above, below);
      this.list.draw(found.specs, this.options);
      const height = this.elements.rows.offsetHeight;
      const wanted = isEnd ? this.#height - height : px - this.list.offsetOf(found.anchorKey);
      const { top, roomAbove, roomBelow } = placeRows(wanted, { ...found, height }, this.#height);
      if ((roomAbove <= 0 && roomBelow <= 0) || round === ROUNDS) {
        this.#place(top);
        return;
      }
      if (roomAbove > 0) above += rowsFor(roomAbove);
      if (roomBelow > 0) below += rowsFor(roomBelow);
    }
  }

  /** Moves the rows, and takes the first line in view as the anchor. */
  #place(top: number): void {
    this.#top = Math.round(top);
    this.elements.rows.style.transform = `translateY(${this.#top}px)`;
    const fraction = top - this.#top;
    for (const spec of this.list.specs) {
      if (spec.kind !== 'line' && spec.kind !== 'unknown') continue;
      const row = this.list.elementOf(spec.key);
      if (!row) continue;
      const px = this.#top + row.offsetTop;
      if (px + row.offsetHeight <= 0) continue;
      this.#anchor = { line: spec.position, px: px + fraction };
      return;
    }
  }

  /** The width only grows, so that a scroll along the lines is not taken back. */
  #updateWidth(): void {
    const { pane, rows } = this.elements;
    this.#widest = this.options.wraps ? 0 : Math.max(this.#widest, rows.scrollWidth);
    pane.style.minWidth = `max(100%, ${this.#widest}px)`;
  }

  #seen(): ViewPosition {
    const shown = this.list.specs.filter((spec) => {
      const row = spec.kind === 'line' || spec.kind === 'unknown' ? this.list.elementOf(spec.key) : undefined;
      const from = this.#top + (row?.offsetTop ?? 0);
      return row !== undefined && from + row.offsetHeight > 0.5 && from < this.#height - 0.5;
    });
    const [top, bottom] = [shown[0], shown.at(-1)];
    const isEndShown = this.#top + this.elements.rows.offsetHeight <= this.#height + 1;
    const bottomPosition = bottom && 'position' in bottom ? bottom.position : this.source.last;
    return {
      top: top?.kind === 'line' ? top.line : null,
      bottom: bottom?.kind === 'line' ? bottom.line : null,
      topPosition: top && 'position' in top ? top.position : this.source.first,
      bottomPosition,
      isAtEnd: isEndShown && bottomPosition >= this.source.last,
      isJumping: this.#isJumping,
    };
  }

  // Reading

  #readAhead(): void {
    clearTimeout(this.#rest);
    // The texts at a dragged thumb are read when it rests.
    if (this.#isJumping) this.#rest = setTimeout(() => this.source.request(this.#needs()), REST_MS);
    else this.source.request(this.#needs());
  }

  /** What is missing: in view first, then ahead, then behind. */
  #needs(): Need[] {
    const needs: Need[] = [];
    for (const [index, spec] of this.list.specs.entries()) {
      if (spec.kind !== 'unknown') continue;
      const isAbove = this.source.isDense ? spec.position < this.#anchor.line : index === 0;
      needs.push({ position: spec.position, direction: isAbove ? 'backward' : 'forward' });
    }
    const { topPosition, bottomPosition } = this.position;
    const isDown = this.#direction > 0;
    const down = this.#beyond(bottomPosition, 1, isDown ? AHEAD : BEHIND);
    const up = this.#beyond(topPosition, -1, isDown ? BEHIND : AHEAD);
    return isDown ? [...needs, ...down, ...up] : [...needs, ...up, ...down];
  }

  #beyond(from: number, direction: 1 | -1, rows: number): Need[] {
    const name = direction > 0 ? 'forward' : 'backward';
    if (this.source.isDense) {
      const position = Math.max(this.source.first, Math.min(from + direction * rows, this.source.last));
      return [{ position, direction: name }];
    }
    const last = walk(this.source, from, direction, rows).rows.at(-1);
    return last?.kind === 'unknown' ? [{ position: last.position, direction: name }] : [];
  }

  // What is drawn

  /** Every line that is drawn, in their order. */
  drawnLines(): LogLine[] {
    return this.list.specs.flatMap((spec) => (spec.kind === 'line' ? [spec.line] : []));
  }

  /** The element with the text of a line, where it is drawn. */
  runsOf(line: number): HTMLElement | null {
    return this.list.elementOf(`l${line}`)?.querySelector<HTMLElement>('.log-runs') ?? null;
  }
}
