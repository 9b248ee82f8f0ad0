import { describe, expect, it } from 'vitest';
import { type Follow, newLines, step } from './follow';

describe('following', () => {
  const following: Follow = { kind: 'following' };

  it('stops where the person leaves the end, and counts from there', () => {
    const held = step(following, { kind: 'left', ended: 100 });
    expect(held).toEqual({ kind: 'held', seen: 100 });
    expect(newLines(held, 318)).toBe(218);
    expect(step(held, { kind: 'left', ended: 318 })).toBe(held);
  });

  it('goes on when asked, and when the end is reached', () => {
    const held: Follow = { kind: 'held', seen: 1 };
    expect(step(held, { kind: 'asked' })).toEqual(following);
    expect(step(held, { kind: 'reached_end' })).toEqual(following);
    expect(step(following, { kind: 'reached_end' })).toBe(following);
    expect(newLines(following, 9)).toBe(0);
  });

  it('is turned over by its key', () => {
    expect(step(following, { kind: 'toggled', ended: 5 })).toEqual({ kind: 'held', seen: 5 });
    expect(step({ kind: 'held', seen: 5 }, { kind: 'toggled', ended: 9 })).toEqual(following);
  });
});
