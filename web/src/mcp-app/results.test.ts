import { expect, test } from 'vitest';
import { listedProcesses, resultText, webAddress } from './results';

test('the list of processes, and nothing that is none', () => {
  const result = {
    structuredContent: {
      processes: [
        {
          id: 'a1',
          command: 'npm run dev',
          status: 'running',
          duration: 3,
          service: { status: 'ready', url: 'http://localhost:1/' },
        },
        { id: 'b2', command: 'make', status: 'failed', duration: 2, exit_code: 2 },
        { id: 'c3', command: 'x', status: 'terminated', signal: 'SIGKILL' },
        { id: 4 },
        null,
      ],
    },
  };
  const listed = listedProcesses(result);
  expect(listed?.map((it) => [it.id, it.state, it.running, it.exit, it.url])).toEqual([
    ['a1', 'ready', true, null, 'http://localhost:1/'],
    ['b2', 'failed', false, '2', null],
    ['c3', 'terminated', false, 'SIGKILL', null],
  ]);
  expect(listedProcesses({})).toBeNull();
  expect(listedProcesses({ structuredContent: { services: [] } })).toBeNull();
});

test('the text of an answer', () => {
  expect(
    resultText({ content: [{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text', text: 'b' }] }),
  ).toBe('a\nb');
  expect(resultText({})).toBe('');
});

test('addresses of pages only', () => {
  expect(webAddress('https://example.org/')).toBe('https://example.org/');
  for (const bad of ['javascript:alert(1)', 'data:text/html,x', 'no', 3]) expect(webAddress(bad)).toBeNull();
});
