/** How long a page keeps the lease without a key being typed; pure. */

/** The lease goes back after so long without a key, in milliseconds. */
export const LEASE_MS = 5 * 60_000;
/** The person is warned so long before, in milliseconds. */
export const WARNED_MS = 30_000;

export type LeaseAge =
  | { kind: 'held'; leftMs: number }
  | { kind: 'ends_soon'; leftMs: number }
  | { kind: 'over' };

/** Where the lease stands, after the last key. */
export function leaseAge(lastKeyAt: number, now: number): LeaseAge {
  const leftMs = lastKeyAt + LEASE_MS - now;
  if (leftMs <= 0) return { kind: 'over' };
  return { kind: leftMs <= WARNED_MS ? 'ends_soon' : 'held', leftMs };
}
