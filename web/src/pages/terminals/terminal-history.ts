/** What a session printed before this page opened it. */
import { api, body } from '../../api/client';

/** The most bytes that are read; the daemon paints the screen for those who are further behind than 1 MiB. */
const READ_BYTES = 768 * 1024;

export interface TerminalHistory {
  /** Where to begin. */
  from: number;
  /** The end of the output when this was asked. */
  until: number;
}

/**
 * The part of a session's output that is read, so that its lines and commands above the screen are there, too.
 *
 * @throws ApiError, ConnectionError
 */
export async function readHistory(id: string): Promise<TerminalHistory> {
  const params = { path: { id }, query: { limit: 1 } };
  const page = await body(api.GET('/api/v1/executions/{id}/terminal/output', { params }));
  return { from: Math.max(page.start_offset, page.end_offset - READ_BYTES), until: page.end_offset };
}

/** Bytes after the first newline: what begins in the middle of a line may begin within a control sequence. */
export function afterFirstLine(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(bytes.indexOf(0x0a) + 1);
}

/**
 * Whether the rows drawn are those of the daemon's screen; `null` where the two are not of the same moment. Output
 * that is drawn again at another size than it was printed at may look otherwise.
 */
export async function isExact(id: string, offset: number, rows: readonly string[]): Promise<boolean | null> {
  const screen = await body(api.GET('/api/v1/executions/{id}/screen', { params: { path: { id } } }));
  if (screen.offset !== offset) return null;
  return screen.rows.length === rows.length && screen.rows.every((row, index) => row === rows[index]);
}
