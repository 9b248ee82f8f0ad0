/** Measured figures of a test: printed by `npm run figures`, never a reason to fail. */
import { test } from '@playwright/test';

export function note(what: string, value: string): void {
  test.info().annotations.push({ type: what, description: value });
}
