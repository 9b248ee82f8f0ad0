/** Keys that wait while the connection is away; pure. */

/** The most that is kept, in bytes. */
export const KEPT_KEYS = 16 * 1024;

/** All that is typed, or nothing of it: the rest of a text without its middle may do what nobody meant. */
export class WaitingKeys {
  #keys: Uint8Array<ArrayBuffer>[] = [];
  #length = 0;
  #tooMany = false;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** `false`: there are more than are kept, and nothing is until they are taken. */
  keep(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (this.#tooMany || this.#length + bytes.length > KEPT_KEYS) {
      this.#keys = [];
      this.#length = 0;
      this.#tooMany = true;
      return false;
    }
    this.#keys.push(bytes);
    this.#length += bytes.length;
    return true;
  }

  /** What waits, in order; it waits no longer. */
  take(): Uint8Array<ArrayBuffer>[] {
    const keys = this.#keys;
    this.#keys = [];
    this.#length = 0;
    this.#tooMany = false;
    return keys;
  }
}
