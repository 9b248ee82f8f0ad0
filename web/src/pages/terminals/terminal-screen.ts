/** The emulator of one terminal: what it shows, and what its keys do. */
import { t } from '../../i18n/index.svelte';
import { CommandMarks } from './command-marks';
import { type Box, cellOf, TERMINAL_FONT } from './terminal-size';
import { onThemeChange, searchColours, terminalTheme } from './terminal-theme';
import { isReply, watchedKey, webAddress } from './typed-keys';

export type Emulator = typeof import('./xterm');
type Terminal = InstanceType<Emulator['Terminal']>;

/** Lines above the screen that are kept. */
const SCROLLBACK = 10_000;
/** Lines above one that is scrolled to. */
const CONTEXT = 2;

/** What the keys of a terminal ask of the page. */
export type TerminalAction = 'take_or_hand_back' | 'search' | 'leave' | 'copy' | 'previous' | 'next';

export interface ScreenHandlers {
  /** What the person types. */
  onType(bytes: Uint8Array<ArrayBuffer>): void;
  /** What the emulator replies to a query of the program. */
  onReply(bytes: Uint8Array<ArrayBuffer>): void;
  onAction(action: TerminalAction): void;
  /** A key of a writer was pressed while this page watches. */
  onWatchedKey(): void;
  onTitle(title: string): void;
  /** The address of the link under the pointer; `null` where there is none. */
  onLink(address: string | null): void;
  /** The lines, or what of them is visible, changed. */
  onChange(): void;
}

export interface ScreenOptions {
  fontSize: number;
  screenReader: boolean;
  /** Shown only: no keys, no links, no lines above the screen. */
  preview?: boolean;
}

export class TerminalScreen {
  readonly terminal: Terminal;
  readonly marks: CommandMarks;
  readonly #search: InstanceType<Emulator['SearchAddon']>;
  readonly #fit: InstanceType<Emulator['FitAddon']>;
  readonly #handlers: ScreenHandlers;
  readonly #endTheme: () => void;
  /** Whether the person types; otherwise keys are not passed on. */
  #typing = false;
  #queue: Promise<void> = Promise.resolve();
  #encoder = new TextEncoder();

  constructor(emulator: Emulator, host: HTMLElement, options: ScreenOptions, handlers: ScreenHandlers) {
    this.#handlers = handlers;
    emulator.Terminal.strings.promptLabel = t('terminals.input');
    emulator.Terminal.strings.tooMuchOutput = t('terminals.too_much_output');
    this.terminal = new emulator.Terminal({
      allowProposedApi: true,
      cursorInactiveStyle: options.preview ? 'none' : 'outline',
      disableStdin: true,
      fontFamily: TERMINAL_FONT,
      fontSize: options.fontSize,
      logLevel: 'off',
      minimumContrastRatio: 4.5,
      screenReaderMode: options.screenReader,
      scrollback: options.preview ? 0 : SCROLLBACK,
      theme: terminalTheme(),
      linkHandler: {
        activate: (event, address) => openLink(event, address),
        hover: (_, address) => handlers.onLink(webAddress(address)),
        leave: () => handlers.onLink(null),
      },
    });
    this.#fit = new emulator.FitAddon();
    this.#search = new emulator.SearchAddon({ highlightLimit: 1_000 });
    this.terminal.loadAddon(this.#fit);
    this.terminal.loadAddon(this.#search);
    this.marks = new CommandMarks(this.terminal);
    if (!options.preview) this.#interact(emulator);
    this.terminal.open(host);
    this.#endTheme = onThemeChange(() => {
      this.terminal.options.theme = terminalTheme();
    });
  }

  #interact(emulator: Emulator): void {
    const { terminal } = this;
    const handlers = this.#handlers;
    terminal.loadAddon(
      new emulator.WebLinksAddon(openLink, {
        hover: (_, address) => handlers.onLink(webAddress(address)),
        leave: () => handlers.onLink(null),
      }),
    );
    terminal.attachCustomKeyEventHandler((event) => this.#onKey(event));
    terminal.onData((text) => {
      const bytes = this.#encoder.encode(text);
      if (isReply(text)) handlers.onReply(bytes);
      else handlers.onType(bytes);
    });
    terminal.onBinary((text) => handlers.onType(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
    terminal.onTitleChange((title) => handlers.onTitle(title));
    terminal.onWriteParsed(() => handlers.onChange());
    terminal.onScroll(() => handlers.onChange());
    terminal.onResize(() => handlers.onChange());
  }

  /** Draws output. */
  write(bytes: Uint8Array): void {
    this.#then(() => this.terminal.write(bytes));
  }

  /** Draws a screen in place of the present one; the commands on it keep their marks. */
  paint(bytes: Uint8Array): void {
    this.#then(async () => {
      await this.#flush();
      await this.marks.keepAcross(() => new Promise((resolve) => this.terminal.write(bytes, resolve)));
    });
  }

  /** Moves what is visible above the screen, and a line with this text after it. */
  separate(text: string): void {
    if (this.terminal.options.scrollback === 0) return;
    this.#then(async () => {
      await this.#flush();
      if (this.terminal.buffer.active.type === 'normal')
        this.terminal.write(separator(text, this.terminal.rows));
    });
  }

  resize(cols: number, rows: number): void {
    this.#then(() => {
      if (cols !== this.terminal.cols || rows !== this.terminal.rows) this.terminal.resize(cols, rows);
    });
  }

  /** Resolves when everything that arrived is drawn. */
  drawn(): Promise<void> {
    this.#then(() => this.#flush());
    return this.#queue;
  }

  /** Passes keys on, or not. What arrived before it is not replied to: others had to. */
  async setTyping(typing: boolean): Promise<void> {
    this.#typing = typing;
    if (typing) await this.drawn();
    this.terminal.options.disableStdin = !this.#typing;
  }

  /** The cells that fit into the element around the terminal. */
  proposedSize(): { cols: number; rows: number } | undefined {
    return this.#fit.proposeDimensions();
  }

  /** The size of a cell on the page, in pixels; before anything is drawn, that of its letters. */
  cell(): Box {
    const screen = this.terminal.element?.querySelector('.xterm-screen')?.getBoundingClientRect();
    if (!screen?.width || !screen.height) return cellOf(this.terminal.options.fontSize ?? 0);
    return { width: screen.width / this.terminal.cols, height: screen.height / this.terminal.rows };
  }

  /** The visible rows, without blanks at their ends. */
  rows(): string[] {
    const buffer = this.terminal.buffer.active;
    return Array.from(
      { length: this.terminal.rows },
      (_, row) =>
        buffer
          .getLine(buffer.baseY + row)
          ?.translateToString(true)
          .trimEnd() ?? '',
    );
  }

  find(
    text: string,
    direction: 'next' | 'previous',
    options: { regex: boolean; caseSensitive: boolean },
  ): boolean {
    const all = { ...options, decorations: searchColours() };
    return direction === 'next' ? this.#search.findNext(text, all) : this.#search.findPrevious(text, all);
  }

  onResults(listener: (results: { index: number; count: number }) => void): void {
    this.#search.onDidChangeResults(({ resultIndex, resultCount }) =>
      listener({ index: resultIndex, count: resultCount }),
    );
  }

  endSearch(): void {
    this.#search.clearDecorations();
    this.terminal.clearSelection();
  }

  /** Scrolls as far as it takes to see a line. */
  show(line: number): void {
    const { viewportY } = this.terminal.buffer.active;
    const isVisible = line >= viewportY && line < viewportY + this.terminal.rows;
    if (isVisible) return;
    const top = Math.max(0, line - CONTEXT);
    this.terminal.scrollToLine(top);
    // The emulator scrolls by pixels; right after a change of its letters it still counts with the former ones.
    requestAnimationFrame(() => this.terminal.scrollToLine(top));
  }

  async copySelection(): Promise<void> {
    const text = this.terminal.getSelection();
    if (text !== '') await navigator.clipboard.writeText(text);
  }

  dispose(): void {
    this.#endTheme();
    this.terminal.dispose();
  }

  #then(task: () => void | Promise<void>): void {
    this.#queue = this.#queue.then(task);
  }

  #flush(): Promise<void> {
    return new Promise((resolve) => this.terminal.write('', resolve));
  }

  /** Whether the emulator handles the key. */
  #onKey(event: KeyboardEvent): boolean {
    if (event.isComposing) return true;
    const action = actionOf(event);
    if (action !== null) {
      event.preventDefault();
      event.stopPropagation();
      if (event.type === 'keydown') this.#handlers.onAction(action);
      return false;
    }
    return this.#typing || !this.#onWatchedKey(event);
  }

  /** Scrolls, or tells that keys are not passed on. The emulator never gets them. */
  #onWatchedKey(event: KeyboardEvent): true {
    if (event.type !== 'keydown') return true;
    const { terminal } = this;
    const does = watchedKey(event, terminal.hasSelection());
    if (does === 'pass') return true;
    if (!event.ctrlKey) event.preventDefault();
    if (does === 'explain') this.#handlers.onWatchedKey();
    else if (does === 'page_up') terminal.scrollPages(-1);
    else if (does === 'page_down') terminal.scrollPages(1);
    else if (does === 'top') terminal.scrollToTop();
    else terminal.scrollToBottom();
    return true;
  }
}

/** Ends what was cut off, resets margins and colours, and writes the text below the last row. */
function separator(text: string, rows: number): string {
  return `\x18\x1b[?6l\x1b[r\x1b[m\x1b[${rows};1H\r\n\x1b[7m ${text} \x1b[m${'\r\n'.repeat(rows)}\x1b[H`;
}

function actionOf(event: KeyboardEvent): TerminalAction | null {
  if (!event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.shiftKey) {
    if (event.key === 'Escape') return 'leave';
    if (event.code === 'KeyF') return 'search';
    return event.code === 'KeyC' ? 'copy' : null;
  }
  if (event.key === 'Enter') return 'take_or_hand_back';
  if (event.key === 'ArrowUp') return 'previous';
  return event.key === 'ArrowDown' ? 'next' : null;
}

/** Opens an address of the web in a tab of its own, on Ctrl and a click, or on a touch. */
function openLink(event: MouseEvent, text: string): void {
  const address = webAddress(text);
  const touched = window.matchMedia('(pointer: coarse)').matches;
  if (address === null || !(event.ctrlKey || event.metaKey || touched)) return;
  window.open(address, '_blank', 'noopener,noreferrer');
}
