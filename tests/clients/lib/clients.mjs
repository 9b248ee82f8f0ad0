// The official TypeScript clients, on every transport and in every protocol era they support.

import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as Sse1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const INFO = { name: 'ostler-tests', version: '0' };
export const TRANSPORTS = ['stdio', 'http', 'sse'];

// `era` is the protocol revision that must be negotiated.
export const CLIENTS = [
  { name: 'sdk-1', era: '2025-11-25', open: openOld },
  { name: 'client-2-legacy', era: '2025-11-25', open: (target) => openNew(target, 'legacy') },
  { name: 'client-2-auto', era: '2026-07-28', open: (target) => openNew(target, 'auto') },
];

// `hooks.elicit` answers forms, `hooks.updated` is called for changed resources.
async function openOld({ transport, installation, headers = {}, hooks = {} }) {
  const client = new Client1(INFO, { capabilities: capabilities(hooks) });
  if (hooks.elicit) client.setRequestHandler(ElicitRequestSchema, (request) => hooks.elicit(request.params));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => hooks.updated?.(note.params.uri));
  await client.connect(transportTo({ stdio: Stdio1, http: Http1, sse: Sse1 }, transport, installation, headers));
  return wrap(client, (name, args, options) => client.callTool({ name, arguments: args }, undefined, options), {
    version: () => client.transport?.protocolVersion ?? client.transport?._protocolVersion,
    subscribe: (uri) => client.subscribeResource({ uri }),
  });
}

async function openNew({ transport, installation, headers = {}, hooks = {} }, mode) {
  const client = new v2.Client(INFO, { capabilities: capabilities(hooks), versionNegotiation: { mode } });
  if (hooks.elicit) client.setRequestHandler('elicitation/create', (request) => hooks.elicit(request.params));
  client.setNotificationHandler('notifications/resources/updated', (note) => hooks.updated?.(note.params.uri));
  const transports = { stdio: Stdio2, http: v2.StreamableHTTPClientTransport, sse: v2.SSEClientTransport };
  await client.connect(transportTo(transports, transport, installation, headers));
  return wrap(client, (name, args, options) => client.callTool({ name, arguments: args }, options), {
    version: () => client.getNegotiatedProtocolVersion?.(),
    subscribe: (uri) => (mode === 'legacy' ? client.subscribeResource({ uri }) : client.listen({ resourceSubscriptions: [uri] })),
  });
}

const capabilities = (hooks) => (hooks.elicit ? { elicitation: {} } : {});

function transportTo(kinds, transport, installation, headers) {
  if (transport === 'stdio') return new kinds.stdio({ ...installation.stdioProxy, stderr: 'inherit' });
  const url = new URL(`${installation.base}/${transport === 'http' ? 'mcp' : 'sse'}`);
  return new kinds[transport](url, { requestInit: { headers } });
}

function wrap(client, callTool, more) {
  const call = async (name, args = {}, options = {}) => {
    const result = await callTool(name, args, options);
    const text = result.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n');
    return { ...result, text, id: text.match(/\[([0-9a-hjkmnp-tv-z]{8})\b/)?.[1] };
  };
  return { client, call, close: () => client.close(), ...more };
}
