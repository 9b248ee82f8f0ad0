/** The bytes of output, as they were printed. */
import { byteArray } from '../../../api/bytes';
import { fetchFile } from '../../../api/client';
import type { ByteString } from '../../../api/types';
import type { StreamName } from './line';

interface Frame {
  offset?: number;
  data?: ByteString;
}

/** Bytes of a stream from an offset on, at most so many; stops after `until`, where that is given. */
export async function readRaw(
  id: string,
  stream: StreamName,
  offset: number,
  limit: number,
  until?: number,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; isCut: boolean }> {
  const controller = new AbortController();
  const query = new URLSearchParams({ cursor: `${offset}.0`, stream });
  const path = `api/v1/executions/${encodeURIComponent(id)}/raw?${query}`;
  const response = await fetchFile(path, { signal: controller.signal });
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const frame of frames(response)) {
    if (frame.data === undefined || frame.offset === undefined) continue;
    const all = byteArray(frame.data);
    const bytes = all.subarray(Math.max(0, offset - frame.offset));
    const end = until === undefined ? -1 : bytes.indexOf(until);
    const part = end < 0 ? bytes : bytes.subarray(0, end);
    parts.push(part.subarray(0, limit - length));
    length += Math.min(part.length, limit - length);
    if (end >= 0 || length >= limit) break;
  }
  controller.abort();
  return { bytes: join(parts, length), isCut: length >= limit };
}

/** The lines of a body of JSON lines, as they arrive. */
async function* frames(response: Response): AsyncGenerator<Frame> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as Frame;
    if (done) return;
  }
}

function join(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
