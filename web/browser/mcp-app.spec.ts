/** The dashboard of MCP Apps in a frame, between a host that passes on what it calls and the real tools. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FrameLocator, Page } from '@playwright/test';
import { expect, test } from './fixture';
import type { McpClient } from './mcp-client';

const FILE = join(process.env.OSTLER_WEB_DIR ?? join(import.meta.dirname, '../dist'), 'mcp_app.html');

/** Shows the dashboard as a host does: in a sandboxed frame that speaks JSON-RPC by messages. */
async function showDashboard(page: Page, client: McpClient, context: object): Promise<FrameLocator> {
  await page.exposeFunction('callTool', (call: { name: string; arguments: Record<string, unknown> }) =>
    client.callTool(call.name, call.arguments),
  );
  await page.exposeFunction('openLink', (url: string) => opened.push(url));
  await page.goto('about:blank');
  await page.evaluate(
    ({ html, hostContext }) => {
      const frame = document.createElement('iframe');
      frame.setAttribute('sandbox', 'allow-scripts');
      frame.style.cssText = 'width:700px;height:420px;border:0';
      const host = window as unknown as {
        callTool(call: unknown): Promise<unknown>;
        openLink(url: string): Promise<void>;
      };
      const answers: Record<string, (params: { url: string }) => Promise<unknown>> = {
        'ui/initialize': async () => ({
          protocolVersion: '2026-01-26',
          hostInfo: { name: 'test', version: '1' },
          hostCapabilities: { serverTools: {}, openLinks: {} },
          hostContext,
        }),
        'tools/call': (params) => host.callTool(params),
        'ui/open-link': async ({ url }) => {
          await host.openLink(url);
          return {};
        },
        'ui/request-display-mode': async () => ({ mode: 'fullscreen' }),
      };
      window.addEventListener('message', async ({ data, source }) => {
        if (source !== frame.contentWindow || data?.id === undefined || !data.method) return;
        const result = await answers[data.method]?.(data.params);
        frame.contentWindow?.postMessage({ jsonrpc: '2.0', id: data.id, result: result ?? {} }, '*');
      });
      frame.srcdoc = html;
      document.body.append(frame);
    },
    { html: readFileSync(FILE, 'utf8'), hostContext: context },
  );
  return page.frameLocator('iframe');
}

let opened: string[] = [];
test.beforeEach(() => {
  opened = [];
});

const INLINE = { displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'], locale: 'en-GB' };

test('processes are listed, read and stopped', async ({ page, daemon }) => {
  const client = await daemon.mcpClient();
  const started = await client.callTool('exec', { command: 'echo first words; sleep 600', wait_ms: 500 });
  expect(started).not.toMatchObject({ isError: true });
  const frame = await showDashboard(page, client, { ...INLINE, theme: 'dark' });
  await expect(frame.getByText('1 running')).toBeVisible();
  await expect(frame.locator('html')).toHaveAttribute('data-theme', 'dark');

  await frame.getByRole('button', { name: 'echo first words; sleep 600', exact: true }).click();
  await expect(frame.locator('pre')).toContainText('first words');
  await frame.getByRole('button', { name: 'Back' }).click();

  await frame.getByRole('button', { name: 'Stop echo first words; sleep 600' }).click();
  await expect(frame.getByText('Terminated')).toBeVisible();
  await expect(frame.getByText('0 running')).toBeVisible();
  await client.close();
});

test('the address of a service is opened by the host', async ({ page, daemon }) => {
  const client = await daemon.mcpClient();
  await client.callTool('service', { action: 'start', command: ['python3', '-m', 'http.server', '0'] });
  const frame = await showDashboard(page, client, INLINE);
  await frame.getByRole('button', { name: /^Open http:/ }).click();
  await expect.poll(() => opened).toHaveLength(1);
  expect(opened[0]).toMatch(/^http:\/\/localhost:\d+\/$/);
  await client.callTool('service', { action: 'stop', name: 'http.server' });
  await client.close();
});

test('commands and output are text, whatever they hold', async ({ page, daemon }) => {
  const client = await daemon.mcpClient();
  const command = 'echo "<img src=x onerror=window.hacked=1>"; sleep 600 # <script>window.hacked=1</script>';
  await client.callTool('exec', { command, wait_ms: 500 });
  const frame = await showDashboard(page, client, INLINE);
  await frame.getByRole('button', { name: command, exact: true }).click();
  await expect(frame.locator('pre')).toContainText('<img src=x onerror=window.hacked=1>');
  expect(await frame.locator('body').evaluate(() => 'hacked' in window)).toBe(false);
  await client.close();
});
