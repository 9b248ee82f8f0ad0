/** The services of a page: all that are known, or those of a directory's workspace and dismissed ones. */
import { api, body } from '../../api/client';
import type { Service } from '../../api/types';
import { readPages } from '../../state/pages';
import { services } from '../../state/services.svelte';

/** Services of one request. */
const PAGE = 200;
/** The most pages that are read. */
const PAGES = 10;
/** The most services that are shown. */
export const SHOWN = PAGE * PAGES;

export interface Selection {
  /** A directory in or below a workspace; empty for all workspaces. */
  cwd: string;
  dismissed: boolean;
}

export class Listing {
  #own = $state.raw<Service[] | null>(null);
  #error = $state.raw<unknown>(null);
  #elsewhere = $state(0);
  #isCut = $state(false);
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
        this.#isCut = false;
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

  /** Whether there are more than are shown. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get #isAll(): boolean {
    const { cwd, dismissed } = this.#selection();
    return cwd === '' && !dismissed;
  }

  async #read({ cwd, dismissed }: Selection, isCurrent: () => boolean): Promise<void> {
    const selected = { limit: PAGE, dismissed, ...(cwd === '' ? {} : { cwd }) };
    try {
      const { pages, isCut } = await readPages((cursor) => {
        const query = { ...selected, ...(cursor === undefined ? {} : { cursor }) };
        return body(api.GET('/api/v1/services', { params: { query } }));
      }, PAGES);
      if (!isCurrent()) return;
      this.#own = pages.flatMap((page) => page.services);
      this.#elsewhere = pages.at(-1)?.elsewhere ?? 0;
      this.#isCut = isCut;
      this.#error = null;
    } catch (caught) {
      if (isCurrent()) this.#error = caught;
    }
  }
}
