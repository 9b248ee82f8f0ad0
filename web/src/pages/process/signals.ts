/** Names of signals, as Linux numbers them (signal(7)); pure. */
const NAMES = (
  'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG ' +
  'XCPU XFSZ VTALRM PROF WINCH IO PWR SYS'
).split(' ');

/** `SIGKILL` for 9; `signal 40` for one without a name. */
export function signalName(number: number): string {
  const name = NAMES[number - 1];
  return name === undefined ? `signal ${number}` : `SIG${name}`;
}
