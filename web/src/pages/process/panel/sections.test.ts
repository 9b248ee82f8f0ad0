import { expect, it } from 'vitest';
import { sectionOf } from './sections';

it('shows what the address says', () => {
  expect(sectionOf('events', false)).toBe('events');
  expect(sectionOf('env', true)).toBe('env');
  expect(sectionOf('', false)).toBe('overview');
  expect(sectionOf('', true)).toBe('output');
  expect(sectionOf('nonsense', true)).toBe('output');
});
