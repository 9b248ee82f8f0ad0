/** The messages of each language hold what those of English do. */
import { describe, expect, test } from 'vitest';
import { LANGUAGES, type Language } from './languages';
import sameAsEnglish from './same-as-english.json';
import type { Message, Messages } from './translate';

const files = import.meta.glob<Messages>('./messages/*/*.json', { eager: true, import: 'default' });
/** Texts that a language writes as English does, `*` in each. */
const allowed = sameAsEnglish as Record<string, string[]>;

const english = messagesOf('en');
const others = Object.keys(LANGUAGES).filter((tag) => tag !== 'en') as Language[];

function messagesOf(tag: string): Messages {
  const prefix = `./messages/${tag}/`;
  const own = Object.entries(files).filter(([path]) => path.startsWith(prefix));
  return Object.fromEntries(
    own.flatMap(([path, messages]) =>
      Object.entries(messages).map(([name, message]) => [
        `${path.slice(prefix.length, -'.json'.length)}.${name}`,
        message,
      ]),
    ),
  );
}

/** The texts of a message, by plural category. */
function formsOf(message: Message | undefined): Record<string, string> {
  return typeof message === 'string' ? { text: message } : { ...message };
}

function parametersOf(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '').sort();
}

/** Whether a category is of no number above one, which a word may say. */
function isOfOne(tag: string, category: string): boolean {
  const rules = new Intl.PluralRules(tag);
  const numbers = Array.from({ length: 200 }, (_, n) => n);
  return numbers.every((n) => n < 2 || rules.select(n) !== category) && category !== 'other';
}

/** Whether a text has words, and so something to translate. */
function hasWords(text: string): boolean {
  return /\p{L}/u.test(text.replace(/\{\w+\}/g, ''));
}

describe.each(others)('%s', (tag) => {
  const messages = messagesOf(tag);

  test('no message is missing, none is too many', () => {
    expect(Object.keys(messages).sort()).toEqual(Object.keys(english).sort());
  });

  test('each has a text for each plural category of the language, and no other', () => {
    const categories = [...new Intl.PluralRules(tag).resolvedOptions().pluralCategories].sort();
    for (const [key, message] of Object.entries(messages)) {
      const expected = typeof english[key] === 'string' ? ['text'] : categories;
      expect(Object.keys(formsOf(message)).sort(), key).toEqual(expected);
    }
  });

  test('each text has the parameters of English; one may be a word', () => {
    for (const [key, message] of Object.entries(messages)) {
      const source = english[key];
      const expected = parametersOf(typeof source === 'string' ? source : (source?.other ?? ''));
      for (const [category, text] of Object.entries(formsOf(message))) {
        expect(text.trim(), key).not.toBe('');
        const withNumber = isOfOne(tag, category)
          ? [...new Set([...parametersOf(text), ...expected.filter((name) => name === 'n')])].sort()
          : parametersOf(text);
        expect(withNumber, `${key}.${category}`).toEqual(expected);
      }
    }
  });

  test('no text is that of English, but for those that are allowed', () => {
    const same = Object.entries(messages).flatMap(([key, message]) => {
      const source = Object.values(formsOf(english[key]));
      const isSame = Object.values(formsOf(message)).some((text) => hasWords(text) && source.includes(text));
      return isSame ? [key] : [];
    });
    const permitted = [...(allowed['*'] ?? []), ...(allowed[tag] ?? [])];
    expect(same.filter((key) => !permitted.includes(key))).toEqual([]);
  });
});

test('what is allowed is the same as English somewhere', () => {
  for (const [tag, keys] of Object.entries(allowed)) {
    const tags = tag === '*' ? others : [tag];
    const unused = keys.filter((key) =>
      tags.every((one) => {
        const source = Object.values(formsOf(english[key]));
        return !Object.values(formsOf(messagesOf(one)[key])).some((text) => source.includes(text));
      }),
    );
    expect(unused, tag).toEqual([]);
  }
});

test.each([
  ['en', [0, 1, 2, 5, 21], ['other', 'one', 'other', 'other', 'other']],
  ['pl', [0, 1, 2, 5, 21], ['many', 'one', 'few', 'many', 'many']],
  ['ru', [0, 1, 2, 5, 21], ['many', 'one', 'few', 'many', 'one']],
  ['fr', [0, 1, 2, 5, 21], ['one', 'one', 'other', 'other', 'other']],
  ['ja', [0, 1, 2, 5, 21], ['other', 'other', 'other', 'other', 'other']],
  ['hi', [0, 1, 2, 5, 21], ['one', 'one', 'other', 'other', 'other']],
] as [string, number[], string[]][])('plural categories of %s', (tag, numbers, categories) => {
  const rules = new Intl.PluralRules(tag);
  expect(numbers.map((n) => rules.select(n))).toEqual(categories);
});
