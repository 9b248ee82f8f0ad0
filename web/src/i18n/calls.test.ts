/** Each call of `t` names a message and gives its parameters; each message is used. */
import { expect, test } from 'vitest';
import type { Message, Messages } from './translate';

const files = import.meta.glob<Messages>('./messages/en/*.json', { eager: true, import: 'default' });
const sources = import.meta.glob<string>(['../**/*.{ts,svelte}', '!../**/*.test.ts', '!../mcp-app/**'], {
  eager: true,
  query: '?raw',
  import: 'default',
});

const CALL = /\bt\(\s*'([a-z_]+\.[a-z_0-9]+)'\s*(?:\)|,\s*\{([^{}]*)\}\s*,?\s*\))/g;

const messages: Messages = Object.fromEntries(
  Object.entries(files).flatMap(([path, area]) => {
    const name = path.slice(path.lastIndexOf('/') + 1, -'.json'.length);
    return Object.entries(area).map(([key, message]) => [`${name}.${key}`, message]);
  }),
);

function parametersOf(message: Message): string[] {
  const text = typeof message === 'string' ? message : `{n}${message.other}`;
  return [...new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ''))].sort();
}

/** The names of an object literal; a comma within parentheses separates none. */
function namesOf(literal: string): string[] {
  return literal
    .split(/,(?![^()]*\))/)
    .map((entry) => entry.split(':')[0]?.trim() ?? '')
    .filter((name) => name !== '')
    .sort();
}

test('each call gives the parameters of its message', () => {
  let calls = 0;
  for (const [path, source] of Object.entries(sources)) {
    for (const [, key = '', literal = ''] of source.matchAll(CALL)) {
      const message = messages[key];
      if (message === undefined || literal.includes('...')) continue;
      calls += 1;
      expect(namesOf(literal), `${path}: ${key}`).toEqual(parametersOf(message));
    }
  }
  expect(calls).toBeGreaterThan(500);
});

test('each message is used', () => {
  const all = Object.values(sources).join('\n');
  const whole = new Set([...all.matchAll(/'([a-z_]+\.\w+)'/g)].map(([, key]) => key));
  // Keys that are put together: their beginning is written.
  const beginnings = [...new Set([...all.matchAll(/`([a-z_]+\.\w*)\$\{/g)].map(([, start]) => start ?? ''))];
  const isUsed = (key: string) =>
    key.startsWith('mcp_app.') || whole.has(key) || beginnings.some((start) => key.startsWith(start));
  expect(Object.keys(messages).filter((key) => !isUsed(key))).toEqual([]);
});
