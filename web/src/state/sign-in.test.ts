import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { signInState, startSignIn } from './sign-in.svelte';

const told = vi.hoisted(() => ({
  signedOut: () => {},
  otherWindow: (_key: string | null) => {},
  session: vi.fn(),
}));
vi.mock('../api/client', () => ({
  onSignedOut: (listener: () => void) => {
    told.signedOut = listener;
    return () => {};
  },
}));
vi.mock('../api/page-key', () => ({
  onOtherWindow: (listener: (key: string | null) => void) => {
    told.otherWindow = listener;
    return () => {};
  },
}));
vi.mock('../api/session', () => ({ currentSession: told.session, takeCode: () => null }));

let end = () => {};

beforeEach(async () => {
  told.session.mockResolvedValue({ token_needed: true });
  end = startSignIn();
  await vi.waitFor(() => expect(signInState.kind).toBe('signed-in'));
});

afterEach(() => end());

test('access that ended is told; a sign-out in another window needs no reason', () => {
  told.signedOut();
  expect(signInState).toMatchObject({ kind: 'signed-out', ended: true });
  told.otherWindow(null);
  expect(signInState).toMatchObject({ kind: 'signed-out', ended: false });
  // What was on its way then is refused, too.
  told.signedOut();
  expect(signInState.ended).toBe(false);
});

test('a sign-in in another window is one here', async () => {
  told.otherWindow(null);
  told.otherWindow('key');
  await vi.waitFor(() => expect(signInState.kind).toBe('signed-in'));
});
