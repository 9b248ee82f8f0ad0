/** Server-sent events (HTML Standard, section 9.2), parsed from chunks of text; pure. */

export interface ServerSentEvent {
  id: string | null;
  event: string;
  data: string;
}

/** The longest event that is kept, in characters; a longer one is an error of the server. */
const EVENT_CHARACTERS = 4 * 1024 * 1024;

export class SseParser {
  #rest = '';
  #data: string[] = [];
  #event = '';
  #id: string | null = null;

  /** The events that this chunk completes. */
  push(chunk: string): ServerSentEvent[] {
    this.#rest += chunk;
    if (this.#rest.length > EVENT_CHARACTERS) throw new RangeError('an event without end');
    const found: ServerSentEvent[] = [];
    // A CR at the end may be the half of a CRLF.
    for (;;) {
      const match = /\r\n|\n|\r(?=[\s\S])/.exec(this.#rest);
      if (!match) return found;
      const line = this.#rest.slice(0, match.index);
      this.#rest = this.#rest.slice(match.index + match[0].length);
      const event = this.#line(line);
      if (event) found.push(event);
    }
  }

  #line(line: string): ServerSentEvent | null {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    return null;
  }

  #dispatch(): ServerSentEvent | null {
    const data = this.#data;
    const event = this.#event || 'message';
    this.#data = [];
    this.#event = '';
    if (data.length === 0) return null;
    return { id: this.#id, event, data: data.join('\n') };
  }
}
