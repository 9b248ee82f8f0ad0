import { describe, expect, it } from 'vitest';
import { failingFirst, parseChecks } from './doctor';
import { isExpired, tokenRequest } from './token-form';

const NOW = Date.parse('2026-11-24T12:00:00Z');

describe('a new token', () => {
  it('ends after so many days', () => {
    const form = { name: ' ci ', principal: '', scopes: ['project:read' as const], days: 30 };
    expect(tokenRequest(form, NOW)).toEqual({
      name: 'ci',
      scopes: ['project:read'],
      expires: '2026-12-24T12:00:00.000Z',
    });
  });

  it('need not end, and may be for somebody else', () => {
    const form = { name: 'ci', principal: 'builder', scopes: [], days: null };
    expect(tokenRequest(form, NOW)).toEqual({ name: 'ci', scopes: [], principal: 'builder' });
  });

  it('has ended at its time', () => {
    expect(isExpired('2026-11-24T12:00:00Z', NOW)).toBe(true);
    expect(isExpired('2026-11-25T12:00:00Z', NOW)).toBe(false);
    expect(isExpired(undefined, NOW)).toBe(false);
  });
});

describe('the table of the doctor', () => {
  const check = (name: string, holds: boolean) => ({ name, holds, detail: 'seen' });

  it('is read where it is one', () => {
    expect(parseChecks({ checks: [check('a', true)] })).toHaveLength(1);
    expect(parseChecks({ checks: [{ name: 'a' }] })).toBeNull();
    expect(parseChecks(null)).toBeNull();
  });

  it('begins with what does not hold', () => {
    const sorted = failingFirst([check('a', true), check('b', false), check('c', true)]);
    expect(sorted.map((it) => it.name)).toEqual(['b', 'a', 'c']);
  });
});
