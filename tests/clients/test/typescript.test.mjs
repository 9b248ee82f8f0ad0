// What an agent does in a day, through the official TypeScript clients.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { Installation, isAlive, until } from '../lib/installation.mjs';
import { CLIENTS, TRANSPORTS } from '../lib/clients.mjs';

let local;
let served;

before(async () => {
  local = new Installation();
  served = new Installation();
  await served.serve('--no-token', '--legacy-sse');
});

after(async () => {
  await Promise.all([local?.close(), served?.close()]);
});

// They mostly wait.
describe('the TypeScript clients', { concurrency: 5 }, () => {
  for (const transport of TRANSPORTS) {
    for (const { name, era, open } of CLIENTS) {
      describe(`${name} over ${transport}`, { concurrency: 1, timeout: 60_000 }, () => {
        const installation = () => (transport === 'stdio' ? local : served);
        const within = async (hooks, act) => {
          const agent = await open({ transport, installation: installation(), hooks });
          try {
            return await act(agent);
          } finally {
            await agent.close();
          }
        };

        test('it arrives and finds the tools', () =>
          within({}, async ({ client, version }) => {
            assert.equal(client.getServerVersion().name, 'ostler');
            assert.match(client.getInstructions(), /workspace: Active/);
            if (version()) assert.equal(version(), era);
            const names = (await client.listTools()).tools.map((tool) => tool.name);
            for (const tool of ['exec', 'process', 'process_control', 'service']) assert.ok(names.includes(tool), tool);
          }));

        test('exec answers output and exit code', () =>
          within({}, async ({ call }) => {
            const done = await call('exec', { script: 'echo out; exit 3' });
            assert.ok(!done.isError);
            assert.match(done.text, /exit 3/);
            assert.match(done.text, /^out$/m);
          }));

        test('what takes long yields an id, and is waited for', () =>
          within({}, async ({ call }) => {
            const begun = await call('exec', { script: 'read line; echo got $line', input: 'open', wait_ms: 0 });
            await call('process_control', { action: 'write', ids: [begun.id], text: 'it', enter: true });
            const ended = await call('process', { action: 'wait', ids: [begun.id], wait_ms: 20_000 });
            assert.match(ended.text, /got it/);
          }));

        test('progress is told', () =>
          within({}, async ({ call }) => {
            const told = [];
            const onprogress = (progress) => told.push(progress);
            const done = await call('exec', { script: 'for i in 1 2 3; do echo step $i; sleep 1; done', wait_ms: 20_000 }, { onprogress });
            assert.ok(!done.isError);
            assert.ok(told.length > 0 && told.length <= 6, `${told.length} in three seconds`);
            assert.ok(told.some(({ message }) => message?.includes('step ')), JSON.stringify(told));
          }));

        test('a cancelled call ends its command', () =>
          within({}, async ({ call }) => {
            const mark = installation().at('work', `cancelled-${name}-${transport}`);
            const cancel = new AbortController();
            const args = { script: `echo $$ > ${mark}; exec sleep 300`, wait_ms: 40_000 };
            const calling = call('exec', args, { signal: cancel.signal });
            const refused = assert.rejects(calling);
            const pid = await until(() => existsSync(mark) && readFileSync(mark, 'utf8').trim(), 'its start');
            assert.ok(isAlive(pid));
            cancel.abort();
            await refused;
            await until(() => !isAlive(pid), 'its end');
            assert.ok(!(await call('exec', { script: 'true' })).isError, 'the client goes on');
          }));

        test('a prompt is put to the person', () => {
          const asked = [];
          const elicit = ({ message, requestedSchema }) => {
            asked.push(message);
            const properties = Object.entries(requestedSchema.properties);
            return { action: 'accept', content: Object.fromEntries(properties.map(([key, it]) => [key, agreed(it)])) };
          };
          return within({ elicit }, async ({ call }) => {
            const script = 'printf "Continue? [y/n] "; read a; echo "got <$a>"';
            const done = await call('exec', { script, input: 'open', on_prompt: 'ask', wait_ms: 20_000 });
            assert.equal(asked.length, 1, done.text);
            assert.match(asked[0], /Continue\?/);
            assert.match(done.text, /got <y(es)?>/);
          });
        });

        test('resources are listed, read and subscribed to', () => {
          const heard = [];
          return within({ updated: (uri) => heard.push(uri) }, async ({ client, call, subscribe }) => {
            const { id } = await call('exec', { script: 'echo to be read; exec sleep 300', wait_ms: 0 });
            const uri = `proc://${id}`;
            const log = async () => (await client.readResource({ uri: `${uri}/log` })).contents[0].text;
            // Its end must not come before its first word.
            await until(async () => /to be read/.test(await log()), 'its output');
            const listed = (await client.listResources()).resources.map((resource) => resource.uri);
            assert.ok(listed.includes(uri));
            const detail = (await client.readResource({ uri })).contents[0];
            assert.equal(detail.mimeType, 'application/json');
            await subscribe(uri);
            await call('process_control', { action: 'stop', ids: [id], force: true });
            await until(() => heard.includes(uri), 'the news of its end');
            assert.match(await log(), /to be read/);
          });
        });

        test('bad arguments and unknown tools say what is allowed', () =>
          within({}, async ({ call }) => {
            const wrong = await call('exec', { script: 5 });
            assert.ok(wrong.isError);
            assert.match(wrong.text, /value_error.*allowed/s);
            await assert.rejects(call('no_such_tool'), /unknown tool/);
          }));
      });
    }
  }
});

// What a person who agrees picks.
function agreed(schema) {
  if (schema.type === 'boolean') return true;
  const words = schema.enum ?? schema.oneOf?.map((each) => each.const) ?? ['y'];
  return words.find((word) => ['y', 'yes'].includes(word.toLowerCase())) ?? words[0];
}
