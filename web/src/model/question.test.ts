import { expect, test } from 'vitest';
import type { Interaction } from '../api/types';
import {
  answerControl,
  answerOptions,
  idOfEnded,
  isAllowed,
  questionEnd,
  questionText,
  shownNext,
} from './question';

const question = (content: Partial<Interaction>): Interaction => ({
  id: 'i1',
  kind: 'input_request',
  message: 'Name:',
  status: 'open',
  created_at: '2026-11-24T18:00:00Z',
  expires_at: '2026-11-24T18:05:00Z',
  ...content,
});

test.each([
  [{}, 'text'],
  [{ secret: true }, 'secret'],
  [{ kind: 'confirmation' }, 'options'],
  [{ kind: 'confirmation', secret: true }, 'secret'],
  [{ kind: 'choice_selection', options: ['a'] }, 'options'],
  [{ kind: 'file_selection' }, 'file'],
  [{ kind: 'file_selection', options: ['a.txt'] }, 'options'],
] as [Partial<Interaction>, string][])('%j is answered by %s', (content, control) => {
  expect(answerControl(question(content))).toBe(control);
});

test('options, and which of them is the default', () => {
  expect(answerOptions(question({}))).toEqual([]);
  expect(answerOptions(question({ kind: 'confirmation', default: 'no' }))).toEqual([
    { value: 'yes', meaning: null, isDefault: false },
    { value: 'no', meaning: null, isDefault: true },
  ]);
  const choice = question({ kind: 'choice_selection', options: ['1) red', '[2] green'], default: '2' });
  expect(answerOptions(choice).map(({ isDefault }) => isDefault)).toEqual([false, true]);
  expect(
    answerOptions(question({ kind: 'confirmation', options: ['Y', 'n'], default: 'y' }))[0]?.isDefault,
  ).toBe(true);
});

test('an approval says what it permits, and its question is one line', () => {
  const approval = question({
    kind: 'confirmation',
    options: ['yes', 'no'],
    message: 'May this run in /w?\ncurl x\n(rule)',
    approval: { rule: 'ask.network', reason: 'talks to other machines', command: 'curl x' },
  });
  expect(answerOptions(approval).map(({ meaning }) => meaning)).toEqual(['allow', 'refuse']);
  expect(questionText(approval)).toBe('May this run in /w?');
  expect(questionText(question({ message: 'a\nb' }))).toBe('a\nb');
});

test('how it ended', () => {
  expect(questionEnd(question({}), false)).toBeNull();
  expect(
    questionEnd(question({ status: 'answered', end: { text: 'answered by ann', by: 'ann' } }), false),
  ).toEqual({ kind: 'answered', here: false, by: 'ann', reason: null });
  expect(
    questionEnd(question({ status: 'cancelled', end: { text: 'cancelled: the process has ended' } }), false),
  ).toEqual({ kind: 'cancelled', here: false, by: null, reason: 'the process has ended' });
  expect(
    questionEnd(question({ status: 'timed_out', end: { text: 'timed out', took_default: true } }), false),
  ).toEqual({ kind: 'default_taken' });
  expect(questionEnd(question({ status: 'timed_out', end: { text: 'timed out' } }), false)).toEqual({
    kind: 'timed_out',
  });
});

test('the question that is shown stays', () => {
  const pending = [{ id: 'i9' }, { id: 'i2' }];
  expect(shownNext('i2', pending)).toBe('i2');
  expect(shownNext(null, pending)).toBe('i9');
  expect(shownNext('i1', pending)).toBe('i9');
  expect(shownNext('i1', [])).toBeNull();
});

test('what was asked about is allowed by a yes of somebody, and by nothing else', () => {
  const answered = (answer?: string) =>
    isAllowed({
      status: 'answered',
      end: { text: 'answered by ann', ...(answer === undefined ? {} : { answer }) },
    });
  expect(['yes', 'Y'].map(answered)).toEqual([true, true]);
  expect(['no', 'yesterday', undefined].map(answered)).toEqual([false, false, false]);
  expect(isAllowed({ status: 'open' })).toBe(false);
  expect(isAllowed({ status: 'cancelled', end: { text: 'cancelled: restart', answer: 'yes' } })).toBe(false);
});

test('one that has ended is the same each time that it is read', () => {
  const ended = () => question({ status: 'answered', end: { text: 'answered by ann' } });
  expect(idOfEnded(undefined)).toBeNull();
  expect(idOfEnded(question({}))).toBeNull();
  expect(idOfEnded(ended())).toBe('i1');
  expect(idOfEnded(ended())).toBe(idOfEnded(ended()));
});
