/**
 * The texts of the interface. Each area of it has a file of messages in each language; keys are
 * `<file>.<name>`, so that `t('processes.title')` is `title` of `processes.json`.
 */
import { preferences } from '../app/preferences.svelte';
import { bestLanguage, type Language } from './languages';
import type common from './messages/en/common.json';
import type history from './messages/en/history.json';
import type inbox from './messages/en/inbox.json';
import type process from './messages/en/process.json';
import type processes from './messages/en/processes.json';
import type resources from './messages/en/resources.json';
import type services from './messages/en/services.json';
import type settings from './messages/en/settings.json';
import type states from './messages/en/states.json';
import type templates from './messages/en/templates.json';
import type terminals from './messages/en/terminals.json';
import { type Messages, type Parameters, type Translator, translate } from './translate';

interface Areas {
  common: typeof common;
  history: typeof history;
  inbox: typeof inbox;
  process: typeof process;
  processes: typeof processes;
  resources: typeof resources;
  services: typeof services;
  settings: typeof settings;
  states: typeof states;
  templates: typeof templates;
  terminals: typeof terminals;
}

/** Every key, checked when the page is built. */
export type MessageKey = { [A in keyof Areas]: `${A}.${keyof Areas[A] & string}` }[keyof Areas];

const english = joinAreas(
  import.meta.glob<Messages>('./messages/en/*.json', { eager: true, import: 'default' }),
);
const lazy = import.meta.glob<Messages>(['./messages/*/*.json', '!./messages/en/*.json'], {
  import: 'default',
});

let translator = $state.raw<Translator>({ language: 'en', messages: english, fallback: english });

function joinAreas(files: Record<string, Messages>): Messages {
  const joined: Messages = {};
  for (const [path, messages] of Object.entries(files)) {
    const area = path.slice(path.lastIndexOf('/') + 1, -'.json'.length);
    for (const [name, message] of Object.entries(messages)) joined[`${area}.${name}`] = message;
  }
  return joined;
}

/** The text of a key in the language of the page. */
export function t(key: MessageKey, parameters?: Parameters): string {
  return translate(translator, key, parameters);
}

/** The language that is shown, for `Intl`. */
export function language(): string {
  return translator.language;
}

/** Loads the language that is chosen, and shows it. Called once, within an effect root. */
export function keepLanguage(): void {
  $effect(() => {
    const wanted = preferences.language ?? bestLanguage(navigator.languages);
    let current = true;
    void loadLanguage(wanted).then((loaded) => {
      if (!current) return;
      translator = loaded;
      document.documentElement.lang = wanted;
    });
    return () => {
      current = false;
    };
  });
}

async function loadLanguage(wanted: Language): Promise<Translator> {
  if (wanted === 'en') return { language: 'en', messages: english, fallback: english };
  const prefix = `./messages/${wanted}/`;
  const files = Object.entries(lazy).filter(([path]) => path.startsWith(prefix));
  const loaded = await Promise.all(files.map(async ([path, load]) => [path, await load()] as const));
  return { language: wanted, messages: joinAreas(Object.fromEntries(loaded)), fallback: english };
}
