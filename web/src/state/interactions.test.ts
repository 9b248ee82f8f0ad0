import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { followInteractions, interactions } from './interactions.svelte';

const { read } = vi.hoisted(() => ({ read: vi.fn() }));
vi.mock('../api/client', () => ({ api: { GET: read }, body: (answer: unknown) => answer }));
vi.mock('./connection.svelte', () => ({
  onEvent: () => () => {},
  onOpen: (listener: () => void) => {
    listener();
    return () => {};
  },
}));

let end = () => {};

beforeEach(() => {
  vi.useFakeTimers();
  read.mockReset();
});

afterEach(() => {
  end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

for (const visibilityState of ['visible', 'hidden']) {
  test(`a read that failed is repeated, also where nothing happens (${visibilityState})`, async () => {
    vi.stubGlobal('document', { visibilityState });
    read.mockRejectedValueOnce(new Error('disk trouble')).mockResolvedValue({ interactions: [] });
    end = followInteractions();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(interactions.error).toMatchObject({ message: 'disk trouble' });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(interactions.error).toBeNull();
    const reads = read.mock.calls.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(read.mock.calls.length - reads).toBe(visibilityState === 'visible' ? 1 : 0);
  });
}
