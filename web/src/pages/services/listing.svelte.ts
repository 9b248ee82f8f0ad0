/** The services of a page: all that are known, or those of a directory's workspace and dismissed ones. */
import { api, body } from '../../api/client';
import type { Service } from '../../api/types';
import { services } from '../../state/services.svelte';

export interface Selection {
  /** A directory in or below a workspace; empty for all workspaces. */
  cwd: string;
  dismissed: boolean;
}

export class Listing {
  #own = $state.raw<Service[] | null>(null);
  #error = $state.raw<unknown>(null);
  #elsewhere = $state(0);
  #selection: () => Selection;

  constructor(selection: () => Selection) {
    this.#selection = selection;
    $effect(() => {
      const { cwd, dismissed } = selection();
      // Read again with the list that events keep up to date.
      void services.list;
      if (cwd === '' && !dismissed) {
        this.#own = null;
        this.#error = null;
        this.#elsewhere = 0;
        return;
      }
      let current = true;
      void this.#read({ cwd, dismissed }, () => current);
      return () => {
        current = false;
      };
    });
  }

  get list(): readonly Service[] {
    return this.#own ?? (this.#isAll ? services.list : []);
  }

  get loaded(): boolean {
    return this.#isAll ? services.loaded : this.#own !== null;
  }

  get error(): unknown {
    return this.#isAll ? services.error : this.#error;
  }

  /** How many run in other workspaces than the one that is asked for. */
  get elsewhere(): number {
    return this.#elsewhere;
  }

  get #isAll(): boolean {
    const { cwd, dismissed } = this.#selection();
    return cwd === '' && !dismissed;
  }

  async #read({ cwd, dismissed }: Selection, isCurrent: () => boolean): Promise<void> {
    const query = { limit: 200, dismissed, ...(cwd === '' ? {} : { cwd }) };
    try {
      const page = await body(api.GET('/api/v1/services', { params: { query } }));
      if (!isCurrent()) return;
      this.#own = page.services;
      this.#elsewhere = page.elsewhere ?? 0;
      this.#error = null;
    } catch (caught) {
      if (isCurrent()) this.#error = caught;
    }
  }
}
