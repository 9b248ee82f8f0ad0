/** Messages with parameters and plurals; pure. */
import { visiblePart } from '../format/visible-text';

/** A text, or one for each plural category of the language, chosen by the parameter `n`. */
export type Message = string | Partial<Record<Intl.LDMLPluralRule, string>>;
export type Messages = Record<string, Message>;
export type Parameters = Record<string, string | number>;

export interface Translator {
  language: string;
  messages: Messages;
  /** The messages of English, for what is missing. */
  fallback: Messages;
}

/** The text of a key. A parameter stands in braces: `{name}`; numbers are written as the language writes them. */
export function translate(translator: Translator, key: string, parameters: Parameters = {}): string {
  const message = translator.messages[key] ?? translator.fallback[key];
  if (message === undefined) return key;
  const text =
    typeof message === 'string' ? message : pluralForm(translator.language, message, parameters['n']);
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = parameters[name];
    if (value === undefined) return whole;
    return typeof value === 'number' ? formatNumber(translator.language, value) : visiblePart(value);
  });
}

function pluralForm(
  language: string,
  forms: Exclude<Message, string>,
  n: string | number | undefined,
): string {
  const category = new Intl.PluralRules(language).select(Number(n ?? 0));
  return forms[category] ?? forms.other ?? '';
}

const numberFormats = new Map<string, Intl.NumberFormat>();

function formatNumber(language: string, value: number): string {
  let format = numberFormats.get(language);
  if (!format) {
    format = new Intl.NumberFormat(language);
    numberFormats.set(language, format);
  }
  return format.format(value);
}
