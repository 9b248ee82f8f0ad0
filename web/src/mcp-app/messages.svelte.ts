/** The texts of the dashboard: few enough that the one file holds them in every language. */
import { bestLanguage } from '../i18n/languages';
import type mcpApp from '../i18n/messages/en/mcp_app.json';
import type states from '../i18n/messages/en/states.json';
import { type Messages, type Parameters, type Translator, translate } from '../i18n/translate';

type Key = keyof typeof mcpApp | keyof typeof states;

const files = import.meta.glob<Messages>('../i18n/messages/*/{mcp_app,states}.json', {
  eager: true,
  import: 'default',
});

function messagesOf(language: string): Messages {
  const mine = Object.entries(files).filter(([path]) => path.includes(`/messages/${language}/`));
  return Object.assign({}, ...mine.map(([, messages]) => messages));
}

const english = messagesOf('en');
let translator = $state.raw<Translator>({ language: 'en', messages: english, fallback: english });

export function t(key: Key, parameters?: Parameters): string {
  return translate(translator, key, parameters);
}

/** Shows the language of the host. */
export function useLocale(locale: string | undefined): void {
  const language = bestLanguage(locale ? [locale] : navigator.languages);
  translator = { language, messages: messagesOf(language), fallback: english };
  document.documentElement.lang = language;
}
