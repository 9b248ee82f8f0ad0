/**
 * Selecting text in the log. The browser selects what is in view; what has left it is remembered by line, and the
 * browser's selection is put back on the part that is drawn.
 */
import { clip, isEmpty, type Place, type TextSelection } from './selection';

export interface SelectableRows {
  readonly container: HTMLElement;
  /** The element with the text of a line, where it is drawn. */
  runsOf(line: number): HTMLElement | null;
  /** The number of the line that a node belongs to. */
  lineOf(node: Node | null): number | null;
  /** The first and the last line that are drawn. */
  drawn(): { from: number; to: number } | null;
}

export class TextSelector {
  selection: TextSelection | null = null;
  /** Where a selection that is being extended began. */
  #pinned: Place | null = null;
  /** Whether the browser's selection was taken away since nothing of ours is drawn. */
  #isAway = false;

  constructor(
    private readonly rows: SelectableRows,
    private readonly onselect: () => void,
  ) {
    document.addEventListener('selectionchange', this.#onchange);
    rows.container.addEventListener('pointerdown', this.#onpointerdown);
  }

  close(): void {
    document.removeEventListener('selectionchange', this.#onchange);
    this.rows.container.removeEventListener('pointerdown', this.#onpointerdown);
  }

  /** With Shift, a selection goes on from where it began, also where that is out of view. */
  readonly #onpointerdown = (event: PointerEvent): void => {
    this.#pinned = event.shiftKey ? (this.selection?.anchor ?? null) : null;
  };

  get hasText(): boolean {
    return this.selection !== null && !isEmpty(this.selection);
  }

  clear(): void {
    this.selection = null;
    if (this.#isOurs(window.getSelection())) window.getSelection()?.removeAllRanges();
  }

  select(selection: TextSelection): void {
    this.selection = selection;
    this.restore();
  }

  #isOurs(native: Selection | null): boolean {
    const { container } = this.rows;
    return (
      native?.anchorNode != null &&
      container.contains(native.anchorNode) &&
      container.contains(native.focusNode)
    );
  }

  readonly #onchange = (): void => {
    const native = window.getSelection();
    if (this.#isAway && native?.rangeCount === 0) return;
    this.#isAway = false;
    if (!native || !this.#isOurs(native)) {
      // A drag that began here and left it goes on; anything else is a selection elsewhere.
      if (!native?.anchorNode || !this.rows.container.contains(native.anchorNode)) this.selection = null;
      return;
    }
    // Rows that were taken away leave the selection between others; nobody selected that.
    if (native.anchorNode === this.rows.container) return;
    const anchor = this.#pinned ?? this.#placeOf(native.anchorNode, native.anchorOffset);
    const focus = this.#placeOf(native.focusNode, native.focusOffset);
    if (!anchor || !focus) return;
    const known = this.#clipped();
    // An end that is only the edge of what is drawn stands for the one that was selected.
    this.selection = {
      anchor:
        known && !this.#pinned && this.#isSame(known.anchor, anchor) && this.selection
          ? this.selection.anchor
          : anchor,
      focus: known && this.#isSame(known.focus, focus) && this.selection ? this.selection.focus : focus,
    };
    if (this.#pinned) this.restore();
    if (this.hasText) this.onselect();
  };

  #clipped(): TextSelection | null {
    const drawn = this.rows.drawn();
    return this.selection && drawn ? clip(this.selection, drawn) : null;
  }

  #isSame(a: Place, b: Place): boolean {
    return a.line === b.line && this.#columnIn(a) === this.#columnIn(b);
  }

  #columnIn({ line, column }: Place): number {
    return Math.min(column, this.rows.runsOf(line)?.textContent?.length ?? 0);
  }

  /** The place in the output of a place in the document. */
  #placeOf(node: Node | null, offset: number): Place | null {
    const line = this.rows.lineOf(node) ?? this.#lineOfChild(node, offset);
    const runs = line === null ? null : this.rows.runsOf(line);
    if (line === null || !runs || !node) return null;
    if (!runs.contains(node)) {
      const isBefore = (runs.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
      return { line, column: isBefore ? 0 : (runs.textContent?.length ?? 0) };
    }
    const range = document.createRange();
    range.selectNodeContents(runs);
    range.setEnd(node, offset);
    return { line, column: range.toString().length };
  }

  /** The line of the row that follows a place between rows. */
  #lineOfChild(node: Node | null, offset: number): number | null {
    if (node !== this.rows.container) return null;
    const child = node.childNodes[Math.min(offset, node.childNodes.length - 1)];
    return this.rows.lineOf(child ?? null);
  }

  /** Puts the browser's selection on what is drawn of ours. */
  restore(): void {
    const native = window.getSelection();
    if (!native || !this.selection || isEmpty(this.selection)) return;
    const shown = this.#clipped();
    if (!shown) {
      if (this.#isOurs(native)) {
        this.#isAway = true;
        native.removeAllRanges();
      }
      return;
    }
    const anchor = this.#nodeOf(shown.anchor);
    const focus = this.#nodeOf(shown.focus);
    if (!anchor || !focus) return;
    const isThere =
      native.anchorNode === anchor.node &&
      native.anchorOffset === anchor.offset &&
      native.focusNode === focus.node &&
      native.focusOffset === focus.offset;
    if (!isThere) native.setBaseAndExtent(anchor.node, anchor.offset, focus.node, focus.offset);
  }

  #nodeOf(place: Place): { node: Node; offset: number } | null {
    const runs = this.rows.runsOf(place.line);
    if (!runs) return null;
    const walker = document.createTreeWalker(runs, NodeFilter.SHOW_TEXT);
    let left = this.#columnIn(place);
    let last: Node = runs;
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const length = node.textContent?.length ?? 0;
      if (left <= length) return { node, offset: left };
      left -= length;
      last = node;
    }
    return { node: last, offset: last === runs ? 0 : (last.textContent?.length ?? 0) };
  }
}
