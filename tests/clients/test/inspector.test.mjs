// The Inspector's command line: one process per request, so it sees what one request can show.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { Installation } from '../lib/installation.mjs';

const run = promisify(execFile);
const INSPECTOR = path.resolve(import.meta.dirname, '../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

const APP = '<!doctype html><title>Dashboard</title><script>parent.postMessage({}, "*")</script>';

const TARGETS = ['stdio', 'http', 'sse'].flatMap((transport) => ['legacy', 'modern'].map((era) => [transport, era]));

let local;
let served;

// An installation whose web interface is one file: the MCP App.
function installation() {
  const made = new Installation();
  mkdirSync(made.at('dist'));
  writeFileSync(made.at('dist', 'mcp_app.html'), APP);
  mkdirSync(made.at('config', 'ostler'), { mode: 0o700 });
  writeFileSync(made.at('config', 'ostler', 'config.toml'), `[http]\nweb_directory = "${made.at('dist')}"\n`);
  return made;
}

before(async () => {
  local = installation();
  served = installation();
  await served.serve('--no-token', '--legacy-sse');
});

after(async () => {
  await Promise.all([local?.close(), served?.close()]);
});

// One request; its result.
async function ask(target, method, ...args) {
  return JSON.parse(await output(target, method, ...args));
}

// One request; what is printed for it.
async function output([transport, era], method, ...args) {
  const installation = transport === 'stdio' ? local : served;
  const stdioProxy = installation.stdioProxy;
  const target = transport === 'stdio' ? [stdioProxy.command, ...stdioProxy.args] : [`${installation.base}/${transport === 'http' ? 'mcp' : 'sse'}`];
  // It hands on little of its own environment.
  const pointed = Object.entries(installation.env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  const before = transport === 'stdio' ? pointed : [];
  const named = transport === 'stdio' ? [] : ['--header', 'Ostler-Session: inspector'];
  const words = [INSPECTOR, '--cli', ...before, ...target, '--transport', transport, '--protocol-era', era, ...named, '--method', method, ...args];
  const env = { ...installation.env, PATH: `${path.dirname(process.execPath)}:${installation.env.PATH}` };
  const { stdout } = await run(process.execPath, words, { env, cwd: stdioProxy.cwd, timeout: 50_000 });
  return stdout;
}

// What it says of the MCP App of each tool, as a client that shows apps or as one that does not.
async function apps(target, ...flags) {
  const printed = await output(target, 'tools/list', '--app-info', ...flags).catch((failed) => failed.stdout);
  return new Map(printed.trim().split('\n').map((line) => JSON.parse(line)).map((each) => [each.toolName, each]));
}

const text = (result) => result.content.map((block) => block.text).join('\n');
const tool = (target, name, args) =>
  ask(target, 'tools/call', '--tool-name', name, ...Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]));

describe('the Inspector', { concurrency: 3 }, () => {
  for (const target of TARGETS) {
    describe(`over ${target.join(', ')}`, { concurrency: 1, timeout: 120_000 }, () => {
      test('it lists the tools, whose schemas are portable', async () => {
        const { tools } = await ask(target, 'tools/list', '--strict');
        const names = tools.map((each) => each.name);
        for (const name of ['exec', 'process', 'process_control', 'service']) assert.ok(names.includes(name), name);
      });

      test('exec answers output and exit code', async () => {
        const done = await tool(target, 'exec', { script: 'echo out; exit 3' });
        assert.ok(!done.isError);
        assert.match(text(done), /exit 3[^]*out/);
      });

      test('what takes long yields an id', async () => {
        const begun = await tool(target, 'exec', { script: 'echo begun; exec sleep 300', wait_ms: 500 });
        assert.match(text(begun), /\[[0-9a-z]{8} running[^]*begun/);
      });

      test('a short call is no task, though it knows tasks', async () => {
        const done = await tool(target, 'exec', { script: 'sleep 1; echo slept' });
        assert.match(text(done), /slept/);
      });

      // Without tasks it would be told to come back for it after ten seconds.
      if (target[1] === 'modern') {
        test('a long call is a task that it follows to its end', async () => {
          const done = await tool(target, 'exec', { script: 'sleep 12; echo slept' });
          assert.match(text(done), /exit 0[^]*slept/);
        });
      }

      test('resources are listed and read', async () => {
        const { resources } = await ask(target, 'resources/list');
        assert.ok(resources.some((each) => each.uri === 'proc://'));
        const { resourceTemplates } = await ask(target, 'resources/templates/list');
        assert.ok(resourceTemplates.some((each) => each.uriTemplate.startsWith('proc://{id}')));
        const { contents } = await ask(target, 'resources/read', '--uri', 'proc://');
        assert.equal(contents[0].mimeType, 'application/json');
      });

      test('the MCP App is bound to the tools that it shows, for clients that show apps', async () => {
        const found = await apps(target, '--advertise-apps');
        for (const name of ['process', 'service']) {
          const { hasApp, resourceUri, resourceMimeType, resourceError } = found.get(name);
          assert.deepEqual({ hasApp, resourceUri, resourceMimeType, resourceError },
            { hasApp: true, resourceUri: 'ui://ostler/dashboard', resourceMimeType: 'text/html;profile=mcp-app', resourceError: undefined });
        }
        assert.equal(found.get('exec').hasApp, false);
        const others = await apps(target);
        assert.ok(others.has('process') && [...others.values()].every((each) => !each.hasApp));
      });

      test('the page of the MCP App is listed and read', async () => {
        const { resources } = await ask(target, 'resources/list', '--advertise-apps');
        const app = resources.find((each) => each.uri === 'ui://ostler/dashboard');
        assert.equal(app?.mimeType, 'text/html;profile=mcp-app');
        const { contents } = await ask(target, 'resources/read', '--uri', app.uri, '--advertise-apps');
        assert.deepEqual(contents.map(({ uri, text }) => ({ uri, text })), [{ uri: app.uri, text: APP }]);
        const others = await ask(target, 'resources/list');
        assert.ok(others.resources.every((each) => !each.uri.startsWith('ui:')));
      });

      test('bad arguments are an error that says what is allowed', async () => {
        const wrong = await tool(target, 'process', { action: 'dance' }).catch((failed) => JSON.parse(failed.stdout));
        assert.ok(wrong.isError);
        assert.match(text(wrong), /allowed/);
      });
    });
  }
});
