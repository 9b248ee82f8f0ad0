/** The WebSocket of a terminal session, across ends of the connection and of the daemon. */
import { api, body } from '../../api/client';
import { webSocketProtocols } from '../../api/page-key';
import { ApiError } from '../../api/problem';
import type { TerminalClientMessage, TerminalServerMessage, TermSize } from '../../api/types';
import { serverPath } from '../../app/base-path';
import { INITIAL, type SessionInput, type SessionState, step } from './session-state';
import { messages } from './typed-keys';
import { WaitingKeys } from './waiting-keys';

/** The time before the first, second, … attempt to connect again, in milliseconds; the last one repeats. */
const RETRY_MS = [100, 250, 500, 1_000, 2_000, 5_000];

export interface ConnectionHandlers {
  /** Anything of the state changed. */
  onState(state: SessionState): void;
  /** Output, or a painted screen. */
  onBytes(bytes: Uint8Array, painted: boolean): void;
  /** The session cannot be attached to at all. */
  onProblem(error: unknown): void;
}

export interface TerminalConnectionOptions {
  id: string;
  /** The offset to begin at; `null` for the present screen. */
  offset: number | null;
  /** The name that others see while this page types. */
  name: string;
}

export class TerminalConnection {
  #state: SessionState = INITIAL;
  #socket: WebSocket | null = null;
  #closed = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #waiting = new WaitingKeys();
  readonly #handlers: ConnectionHandlers;
  readonly #options: TerminalConnectionOptions;

  constructor(options: TerminalConnectionOptions, handlers: ConnectionHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#connect(options.offset);
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Asks for the lease. */
  take(takeOver: boolean): void {
    if (this.#state.link !== 'open') return;
    this.#input({ kind: 'asks' });
    this.#send({ type: 'take', take_over: takeOver, name: this.#options.name });
  }

  /** Gives the lease back. `expired`: nobody typed for too long. */
  handBack(expired = false): void {
    this.#discardWaiting();
    this.#input({ kind: 'hands_back', expired });
    this.#send({ type: 'hand_back' });
  }

  resize(size: TermSize): void {
    if (this.#state.typing !== 'typing') return;
    this.#send({ type: 'resize', cols: size.cols, rows: size.rows });
  }

  /** Asks for the present screen; one of an ended session comes with a connection of its own. */
  repaint(): void {
    if (this.#state.link === 'ended' && !this.#closed) this.#connect(null);
    else this.#send({ type: 'repaint' });
  }

  /** Types. While the lease comes back after an interruption, keys wait. */
  type(bytes: Uint8Array<ArrayBuffer>): void {
    const { typing, resumes } = this.#state;
    if (typing === 'typing') {
      this.#sendKeys(bytes);
      if (this.#state.unsent) this.#input({ kind: 'types' });
    } else if (resumes || typing === 'waiting') this.#keep(bytes);
  }

  /** Replies to a query of the program; nothing that the person typed. */
  reply(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#state.typing === 'typing') this.#sendKeys(bytes);
  }

  title(title: string): void {
    if (title !== this.#state.title) this.#input({ kind: 'title', title });
  }

  /** The notice was read. */
  told(): void {
    if (this.#state.notice) this.#input({ kind: 'told' });
  }

  retryNow(): void {
    if (this.#socket || this.#closed || this.#state.link === 'ended') return;
    clearTimeout(this.#timer);
    this.#connect(this.#nextOffset);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = null;
  }

  #input(input: SessionInput): void {
    this.#state = step(this.#state, input);
    this.#handlers.onState(this.#state);
  }

  #address(offset: number | null): string {
    const path = serverPath(`api/v1/executions/${encodeURIComponent(this.#options.id)}/terminal`);
    const url = new URL(path, window.location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    if (offset !== null) url.searchParams.set('offset', String(offset));
    return url.href;
  }

  get #nextOffset(): number | null {
    return this.#state.offset ?? this.#options.offset;
  }

  #connect(offset: number | null): void {
    const socket = new WebSocket(this.#address(offset), webSocketProtocols());
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#input({ kind: 'connects', fromOffset: offset !== null });
    let opened = false;
    socket.onopen = () => {
      opened = true;
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (this.#socket === socket) this.#receive(data);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      if (!opened) void this.#explain();
      this.#onClosed();
    };
  }

  /** A browser does not tell why a connection was refused: the execution's own address does. */
  async #explain(): Promise<void> {
    const params = { path: { id: this.#options.id } };
    try {
      const execution = await body(api.GET('/api/v1/executions/{id}', { params }));
      if (execution.terminal || this.#closed) return;
      // Its screen says that it has none.
      await body(api.GET('/api/v1/executions/{id}/screen', { params }));
    } catch (error) {
      if (this.#closed || !(error instanceof ApiError) || error.problem.retryable) return;
      this.close();
      this.#handlers.onProblem(error);
    }
  }

  #receive(data: string | ArrayBuffer): void {
    if (typeof data === 'string') {
      this.#onMessage(JSON.parse(data) as TerminalServerMessage);
      return;
    }
    const bytes = new Uint8Array(data);
    const painted = this.#state.paints;
    this.#input({ kind: 'bytes', length: bytes.length });
    this.#handlers.onBytes(bytes, painted);
  }

  #onMessage(message: TerminalServerMessage): void {
    const { resumes } = this.#state;
    this.#input({ kind: 'message', message });
    if (message.type === 'hello') {
      this.#failures = 0;
      if (resumes) this.take(false);
    }
    if (this.#state.typing === 'typing') this.#sendWaiting();
    else if (message.type === 'exit' || (message.type === 'refused' && message.take)) this.#discardWaiting();
  }

  #onClosed(): void {
    if (this.#closed || this.#state.link === 'ended') return;
    this.#input({ kind: 'broken' });
    const delay = RETRY_MS[Math.min(this.#failures, RETRY_MS.length - 1)] ?? 0;
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#connect(this.#nextOffset), delay);
  }

  #keep(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#waiting.keep(bytes)) this.#input({ kind: 'discards' });
  }

  /** Nobody takes what waits any more: the person is told. */
  #discardWaiting(): void {
    if (!this.#waiting.isEmpty) this.#input({ kind: 'discards' });
    this.#waiting.take();
  }

  #sendWaiting(): void {
    for (const keys of this.#waiting.take()) this.#sendKeys(keys);
  }

  #sendKeys(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      this.#keep(bytes);
      return;
    }
    for (const message of messages(bytes)) this.#socket.send(message);
  }

  #send(message: TerminalClientMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}
