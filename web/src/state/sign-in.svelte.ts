/** Whether somebody is signed in. */
import { onSignedOut } from '../api/client';
import { onOtherWindow } from '../api/page-key';
import { ConnectionError } from '../api/problem';
import { currentSession, signIn, signOut, takeCode, type WebSession } from '../api/session';

type State =
  | { kind: 'unknown' }
  | { kind: 'signed-in'; session: WebSession }
  /**
   * `problem`: why a link or token did not do, or why the daemon did not answer. `ended`: the daemon takes the
   * credentials no longer, and nobody signed out here.
   */
  | { kind: 'signed-out'; problem: unknown; ended?: boolean };

/** The time before the next attempt while the daemon does not answer, in milliseconds. */
const RETRY_MS = 1_000;

let state = $state.raw<State>({ kind: 'unknown' });

export const signInState = {
  get kind() {
    return state.kind;
  },
  get problem(): unknown {
    return state.kind === 'signed-out' ? state.problem : null;
  },
  /** Whether the access ended while the page was used. */
  get ended(): boolean {
    return state.kind === 'signed-out' && state.ended === true;
  },
  get session(): WebSession | null {
    return state.kind === 'signed-in' ? state.session : null;
  },
};

/** Uses the code of a link, else the credentials that are there. Follows the end of the session. */
export function startSignIn(): () => void {
  const ends = [
    onSignedOut(() => {
      // Before and after that, who asks says what is wrong.
      if (state.kind === 'signed-in') state = { kind: 'signed-out', problem: null, ended: true };
    }),
    onOtherWindow((key) => {
      if (key === null) state = { kind: 'signed-out', problem: null };
      else void check(null);
    }),
  ];
  void begin();
  return () => {
    for (const end of ends) end();
  };
}

async function begin(): Promise<void> {
  const code = takeCode();
  if (code !== null) await signInWith({ code });
  else await check(null);
}

/** Signs in; what fails is the problem of the state. */
export async function signInWith(credential: { token: string } | { code: string }): Promise<void> {
  let problem: unknown = null;
  try {
    await signIn(credential);
  } catch (error) {
    problem = error;
  }
  // A link that was used before is no matter to who is signed in already.
  await check(problem);
}

export async function endSession(): Promise<void> {
  await signOut();
  state = { kind: 'signed-out', problem: null };
}

async function check(problem: unknown): Promise<void> {
  try {
    const session = await currentSession();
    state = session ? { kind: 'signed-in', session } : { kind: 'signed-out', problem };
  } catch (error) {
    state = { kind: 'signed-out', problem: error };
    if (error instanceof ConnectionError) setTimeout(() => void check(problem), RETRY_MS);
  }
}
