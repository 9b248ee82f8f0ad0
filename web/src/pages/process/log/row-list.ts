/** The elements of the rows in view. Only what has changed is touched. */
import type { LogLine } from './line';
import { element, fillRow, type RowFlags, type RowStyle } from './row-content';
import type { Spec } from './row-specs';

export interface RowOptions {
  rowStyle: RowStyle;
  /** Changes whenever every row must be built again. */
  version: string;
  flagsOf(line: LogLine): RowFlags;
}

export class RowList {
  specs: Spec[] = [];
  readonly #elements = new Map<string, HTMLElement>();
  readonly #signatures = new WeakMap<HTMLElement, string>();

  constructor(private readonly container: HTMLElement) {}

  elementOf(key: string): HTMLElement | undefined {
    return this.#elements.get(key);
  }

  /** The place of a row, from the upper edge of the first one; after all where there is none. */
  offsetOf(key: string | null): number {
    const row = key === null ? undefined : this.#elements.get(key);
    return row ? row.offsetTop : this.container.offsetHeight;
  }

  /** Makes the elements those of the rows; what is there already is left alone. */
  draw(specs: Spec[], options: RowOptions): void {
    const wanted = new Set(specs.map((spec) => spec.key));
    const free: HTMLElement[] = [];
    for (const [key, row] of this.#elements) {
      if (wanted.has(key)) continue;
      this.#elements.delete(key);
      row.remove();
      free.push(row);
    }
    let cursor = this.container.firstElementChild;
    for (const spec of specs) {
      let row = this.#elements.get(spec.key);
      if (!row) {
        row = free.pop() ?? document.createElement('div');
        this.#elements.set(spec.key, row);
      }
      this.#update(row, spec, options);
      if (row === cursor) cursor = row.nextElementSibling;
      else this.container.insertBefore(row, cursor);
    }
    this.specs = specs;
  }

  #update(row: HTMLElement, spec: Spec, options: RowOptions): void {
    const flags = spec.kind === 'line' ? options.flagsOf(spec.line) : null;
    const signature = signatureOf(spec, flags, options.version);
    if (this.#signatures.get(row) === signature) return;
    this.#signatures.set(row, signature);
    delete row.dataset['line'];
    if (spec.kind === 'line' && flags) {
      fillRow(row, spec.line, flags, options.rowStyle);
      row.dataset['line'] = String(spec.position);
    } else if (spec.kind === 'unknown') {
      row.className = 'log-row log-unknown';
      const number = element('span', 'log-number', options.rowStyle.formatNumber(spec.position));
      const gutter = element('span', 'log-gutter');
      gutter.append(number);
      row.replaceChildren(gutter);
    } else if (spec.kind === 'mark') {
      row.className = `log-row log-mark ${spec.mark.className}`;
      row.replaceChildren(element('span', 'log-mark-text', spec.mark.text));
    } else {
      row.className = 'log-row log-end';
      row.replaceChildren(element('span', 'log-gutter'), element('span', 'log-cursor'));
    }
  }

  /** The line of an element in its row. */
  lineAt(target: EventTarget | null): LogLine | null {
    const start = target instanceof Element ? target : target instanceof Node ? target.parentElement : null;
    const row = start?.closest<HTMLElement>('[data-line]');
    const key = row && this.container.contains(row) ? row.dataset['line'] : undefined;
    const found = this.specs.find((spec) => spec.kind === 'line' && String(spec.position) === key);
    return found?.kind === 'line' ? found.line : null;
  }
}

function signatureOf(spec: Spec, flags: RowFlags | null, version: string): string {
  if (spec.kind === 'mark') return `mark ${spec.mark.key} ${spec.mark.text}`;
  if (spec.kind !== 'line') return `${spec.kind} ${spec.key} ${version}`;
  const { line } = spec;
  const state = `${line.text.length} ${line.clippedBytes} ${line.terminated}`;
  return `line ${line.number} ${line.offset} ${line.at} ${state} ${JSON.stringify(flags)} ${version}`;
}
