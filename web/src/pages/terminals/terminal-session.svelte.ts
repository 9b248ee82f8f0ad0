/** One terminal session that is open on the page: its connection, its emulator, and who types. */
import { t } from '../../i18n/index.svelte';
import { onOpen } from '../../state/connection.svelte';
import type { CommandMark } from './command-marks';
import { type LeaseAge, leaseAge } from './lease';
import { neighbour } from './osc133';
import { INITIAL, type SessionState } from './session-state';
import { TerminalConnection } from './terminal-connection';
import { afterFirstLine, isExact, readHistory, type TerminalHistory } from './terminal-history';
import { type ScreenOptions, type TerminalAction, TerminalScreen } from './terminal-screen';
import { withCtrl } from './typed-keys';

/** Attempts to compare the screen with the daemon's, while output goes on. */
const COMPARISONS = 3;
const COMPARE_MS = 200;
/** The time that a program has to draw its screen at another size, in milliseconds. */
const SETTLE_MS = 400;

export interface SessionOptions extends ScreenOptions {
  id: string;
  /** The name that others see. */
  name: string;
  /** Asks for the lease at once. */
  takes: boolean;
  onAction(action: TerminalAction): void;
  onWatchedKey(): void;
}

export class TerminalSession {
  state = $state.raw<SessionState>(INITIAL);
  /** Whether everything from before is drawn. */
  ready = $state(false);
  problem = $state.raw<unknown>(null);
  commands = $state.raw<CommandMark[]>([]);
  /** The command that was jumped to. */
  chosen = $state<number | null>(null);
  /** The line at the top of what is visible. */
  top = $state(0);
  /** Whether a full-screen program has the screen. */
  fullScreen = $state(false);
  /** The address of the link under the pointer. */
  link = $state<string | null>(null);
  /** Whether the next sign that is typed is one with Ctrl. */
  ctrl = $state(false);
  lease = $state.raw<LeaseAge>({ kind: 'over' });

  #screen: TerminalScreen | null = null;
  #connection: TerminalConnection | null = null;
  #lastKeyAt = 0;
  #closed = false;
  #drops = false;
  #frame = 0;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #ends: (() => void)[] = [];
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get screen(): TerminalScreen | null {
    return this.#screen;
  }

  /** Shows the session in an element. */
  async open(host: HTMLElement): Promise<void> {
    const [emulator, history] = await Promise.all([import('./xterm'), this.#history()]);
    await document.fonts.load('13px "JetBrains Mono Variable"');
    if (this.#closed) return;
    this.#screen = new TerminalScreen(emulator, host, this.#options, {
      onType: (bytes) => this.#onType(bytes),
      // Who does not type does not reply: others do.
      onReply: (bytes) => this.#connection?.reply(bytes),
      onAction: this.#options.onAction,
      onWatchedKey: this.#options.onWatchedKey,
      onTitle: (title) => this.#connection?.title(title),
      onLink: (address) => {
        this.link = address;
      },
      onChange: () => this.#scheduleUpdate(),
    });
    this.#connect(history);
    this.#ends.push(onOpen(() => this.#connection?.retryNow()));
    const timer = setInterval(() => this.#checkLease(), 1_000);
    this.#ends.push(() => clearInterval(timer));
  }

  take(): void {
    this.#connection?.take(this.state.holder !== null);
  }

  handBack(): void {
    this.#connection?.handBack();
  }

  resize(cols: number, rows: number): void {
    this.#connection?.resize({ cols, rows });
  }

  /** Types a text, as the keys of a keyboard. */
  type(text: string): void {
    this.#onType(new TextEncoder().encode(text));
  }

  /** Pastes a text as the program wants it. */
  paste(text: string): void {
    this.#screen?.terminal.paste(text);
  }

  told(): void {
    this.#connection?.told();
  }

  retryNow(): void {
    this.#connection?.retryNow();
  }

  /** Chooses the command before or after the chosen one, and shows it. */
  jump(direction: 'previous' | 'next'): void {
    const id = neighbour(this.commands, this.chosen, direction);
    const command = this.commands.find((known) => known.id === id);
    if (command) {
      this.chosen = command.id;
      this.#screen?.show(command.line);
    } else if (direction === 'next') {
      this.chosen = null;
      this.#screen?.terminal.scrollToBottom();
    }
  }

  outputOf(command: number): string {
    return this.#screen?.marks.outputOf(command) ?? '';
  }

  close(): void {
    this.#closed = true;
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settling);
    for (const end of this.#ends) end();
    this.#connection?.close();
    this.#screen?.dispose();
  }

  async #history(): Promise<TerminalHistory | null> {
    if (this.#options.preview) return null;
    // Without it, the connection tells what is wrong; the present screen is shown.
    return readHistory(this.#options.id).catch(() => null);
  }

  #connect(history: TerminalHistory | null): void {
    this.#drops = (history?.from ?? 0) > 0;
    let caughtUp = false;
    const { id, name } = this.#options;
    this.#connection = new TerminalConnection(
      { id, name, offset: history?.from ?? null },
      {
        onState: (state) => {
          this.#onState(state);
          const hasAll =
            state.link === 'open' && (state.offset ?? 0) >= (history?.until ?? 0) && !state.paints;
          if (caughtUp || !(hasAll || state.link === 'ended')) return;
          caughtUp = true;
          void this.#onCaughtUp(history !== null);
        },
        onBytes: (bytes, painted) => this.#draw(bytes, painted),
        onProblem: (problem) => {
          this.problem = problem;
        },
      },
    );
  }

  #draw(bytes: Uint8Array, painted: boolean): void {
    if (painted) {
      this.#drops = false;
      this.#screen?.paint(bytes);
    } else if (this.#drops) {
      this.#drops = false;
      this.#screen?.write(afterFirstLine(bytes));
    } else {
      this.#screen?.write(bytes);
    }
  }

  #onState(state: SessionState): void {
    const before = this.state;
    this.state = state;
    if (state.size !== before.size) this.#onResized(state);
    if (state.notice !== before.notice && state.notice?.kind === 'gap') this.#onGap(state.notice.bytes);
    if (state.typing === 'typing' && before.typing !== 'typing') this.#touch();
    if (passesKeys(state) !== passesKeys(before)) void this.#screen?.setTyping(passesKeys(state));
  }

  /** A program draws its lines anew after that; what becomes of the old ones, the daemon's screen says. */
  #onResized({ size, link }: SessionState): void {
    this.#screen?.resize(size.cols, size.rows);
    if (this.ready && link === 'open') this.#settle();
  }

  #settle(): void {
    if (this.#options.preview) return;
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => void this.#repaintUnlessExact(), SETTLE_MS);
  }

  /** Missing output has a line of its own among the others; what the screen shows, the daemon says. */
  #onGap(bytes: number): void {
    this.#screen?.separate(t('terminals.gap', { n: bytes }));
    this.#settle();
  }

  async #repaintUnlessExact(): Promise<void> {
    if (!(await this.#matches()) && !this.#closed) this.#connection?.repaint();
  }

  async #onCaughtUp(replayed: boolean): Promise<void> {
    if (this.#options.takes) this.take();
    // What is on its way with this message is drawn first.
    await Promise.resolve();
    await this.#screen?.drawn();
    if (this.#closed || !this.#screen) return;
    if (replayed) await this.#repaintUnlessExact();
    if (this.#closed) return;
    this.#screen.marks.live = true;
    this.ready = true;
    this.#update();
  }

  async #matches(): Promise<boolean> {
    for (let attempt = 0; attempt < COMPARISONS; attempt += 1) {
      if (this.#closed || !this.#screen) return true;
      const offset = this.state.offset ?? 0;
      await this.#screen.drawn();
      const rows = this.#screen.rows();
      const exact = await isExact(this.#options.id, offset, rows).catch(() => true);
      if (exact !== null) return exact;
      await new Promise((resolve) => setTimeout(resolve, COMPARE_MS));
    }
    return false;
  }

  #onType(bytes: Uint8Array<ArrayBuffer>): void {
    const typed = this.ctrl ? this.#withCtrl(bytes) : bytes;
    this.#touch();
    this.chosen = null;
    this.#connection?.type(typed);
  }

  #withCtrl(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.ctrl = false;
    return new TextEncoder().encode(withCtrl(new TextDecoder().decode(bytes)));
  }

  #touch(): void {
    this.#lastKeyAt = performance.now();
    if (this.state.typing === 'typing') this.lease = leaseAge(this.#lastKeyAt, this.#lastKeyAt);
  }

  #checkLease(): void {
    if (this.state.typing !== 'typing') return;
    this.lease = leaseAge(this.#lastKeyAt, performance.now());
    if (this.lease.kind === 'over') this.#connection?.handBack(true);
  }

  #scheduleUpdate(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => this.#update());
  }

  #update(): void {
    this.#frame = 0;
    if (!this.#screen || this.#closed) return;
    const buffer = this.#screen.terminal.buffer.active;
    this.top = buffer.viewportY;
    this.fullScreen = buffer.type === 'alternate';
    this.commands = this.#screen.marks.list();
  }
}

/** Whether keys are passed on, now or when the connection is back. */
function passesKeys({ typing, resumes }: SessionState): boolean {
  return typing === 'typing' || resumes;
}
