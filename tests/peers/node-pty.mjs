// node-pty as a host of terminals, for `cargo xtask bench pty`. Reads one order per line and
// answers each with a line of durations in nanoseconds:
// `echo N` types one character N times into a raw `cat`, from the write to the echo;
// `hold N` starts N shells, has each print something, and keeps them until the end.

import { createInterface } from 'node:readline';
import { spawn } from 'node-pty';

const size = { cols: 80, rows: 24, name: 'xterm-256color' };
const held = [];

/** Resolves once what the terminal printed holds `text`. */
function printed(terminal, text) {
  return new Promise((resolve) => {
    let seen = '';
    const listener = terminal.onData((data) => {
      seen += data;
      if (seen.includes(text)) {
        listener.dispose();
        resolve();
      }
    });
  });
}

async function echo(count) {
  const terminal = spawn('/bin/sh', ['-c', 'stty raw -echo; echo ready; exec cat'], size);
  await printed(terminal, 'ready');
  const took = [];
  for (let index = 0; index < count; index += 1) {
    const begin = process.hrtime.bigint();
    const answer = printed(terminal, 'x');
    terminal.write('x');
    await answer;
    took.push(process.hrtime.bigint() - begin);
  }
  terminal.kill('SIGKILL');
  return took;
}

async function hold(count) {
  const begin = process.hrtime.bigint();
  const answers = [];
  for (let index = 0; index < count; index += 1) {
    const terminal = spawn('bash', ['--norc', '--noprofile', '-i'], size);
    answers.push(printed(terminal, 'PINEAPPLE'));
    terminal.write('echo pineapple | tr a-z A-Z\r');
    held.push(terminal);
  }
  await Promise.all(answers);
  return [process.hrtime.bigint() - begin];
}

for await (const line of createInterface({ input: process.stdin })) {
  const [order, count] = line.split(' ');
  const took = await { echo, hold }[order](Number(count));
  process.stdout.write(`${took.join(' ')}\n`);
}
held.forEach((terminal) => terminal.kill('SIGKILL'));
process.exit(0);
