import { expect, test } from 'vitest';
import { type Messages, translate } from './translate';

const english: Messages = {
  hello: 'Hello {name}',
  lines: { one: '{n} line', other: '{n} lines' },
};
const russian: Messages = {
  lines: { one: '{n} строка', few: '{n} строки', many: '{n} строк', other: '{n} строки' },
};

test('parameters, numbers and plurals', () => {
  const translator = { language: 'en', messages: english, fallback: english };
  expect(translate(translator, 'hello', { name: '{n}' })).toBe('Hello {n}');
  expect(translate(translator, 'lines', { n: 1 })).toBe('1 line');
  expect(translate(translator, 'lines', { n: 1234 })).toBe('1,234 lines');
  expect(translate(translator, 'hello')).toBe('Hello {name}');
});

test('plurals of the language, and English for what it lacks', () => {
  const translator = { language: 'ru', messages: russian, fallback: english };
  const of = (n: number) => translate(translator, 'lines', { n });
  expect([0, 1, 2, 5, 21].map(of)).toEqual(['0 строк', '1 строка', '2 строки', '5 строк', '21 строка']);
  expect(translate(translator, 'hello', { name: 'x' })).toBe('Hello x');
  expect(translate(translator, 'missing')).toBe('missing');
});
