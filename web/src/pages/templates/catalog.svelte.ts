/** The templates of a directory, read when it changes and on request. */
import { api, body } from '../../api/client';
import type { CommandTemplate, CommandTemplates } from '../../api/types';

export class Catalog {
  #content = $state.raw<CommandTemplates | null>(null);
  #error = $state.raw<unknown>(null);
  #attempt = $state(0);
  readonly #cwd: () => string;

  /** `cwd`: an absolute directory, whose project's templates are included; empty for none. */
  constructor(cwd: () => string) {
    this.#cwd = cwd;
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

  /**
   * One template as it is now; what is shown of all of them follows. Absent where there is none of that id any more.
   *
   * @throws ApiError, ConnectionError
   */
  async latest(id: string): Promise<CommandTemplate | undefined> {
    const cwd = this.#cwd();
    const content = await templatesOf(cwd);
    if (cwd === this.#cwd()) [this.#content, this.#error] = [content, null];
    return content.templates.find((template) => template.id === id);
  }

  async #read(cwd: string, isCurrent: () => boolean): Promise<void> {
    try {
      const content = await templatesOf(cwd);
      if (isCurrent()) [this.#content, this.#error] = [content, null];
    } catch (caught) {
      if (isCurrent()) this.#error = caught;
    }
  }
}

function templatesOf(cwd: string): Promise<CommandTemplates> {
  const query = cwd === '' ? {} : { cwd };
  return body(api.GET('/api/v1/command-templates', { params: { query } }));
}
