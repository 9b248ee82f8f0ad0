/** The templates of a directory, read when it changes. */
import { api, body } from '../../api/client';
import type { CommandTemplates } from '../../api/types';

export class Catalog {
  #content = $state.raw<CommandTemplates | null>(null);
  #error = $state.raw<unknown>(null);
  #attempt = $state(0);

  /** `cwd`: an absolute directory, whose project's templates are included; empty for none. */
  constructor(cwd: () => string) {
    $effect(() => {
      void this.#attempt;
      let current = true;
      void this.#read(cwd(), () => current);
      return () => {
        current = false;
      };
    });
  }

  get content(): CommandTemplates | null {
    return this.#content;
  }

  get error(): unknown {
    return this.#error;
  }

  reload(): void {
    this.#attempt += 1;
  }

  async #read(cwd: string, isCurrent: () => boolean): Promise<void> {
    const query = cwd === '' ? {} : { cwd };
    try {
      const content = await body(api.GET('/api/v1/command-templates', { params: { query } }));
      if (isCurrent()) [this.#content, this.#error] = [content, null];
    } catch (caught) {
      if (isCurrent()) this.#error = caught;
    }
  }
}
