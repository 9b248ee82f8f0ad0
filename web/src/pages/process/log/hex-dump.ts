/** Bytes as rows of hexadecimal digits and text; pure. */

const ROW = 16;

export interface HexRow {
  offset: string;
  bytes: string;
  text: string;
}

export function hexRows(bytes: Uint8Array, start: number): HexRow[] {
  const rows: HexRow[] = [];
  for (let at = 0; at < bytes.length; at += ROW) {
    const row = Array.from(bytes.subarray(at, at + ROW));
    const digits = row.map((byte) => byte.toString(16).padStart(2, '0'));
    const half = (from: number) => digits.slice(from, from + ROW / 2).join(' ');
    rows.push({
      offset: (start + at).toString(16).padStart(8, '0'),
      bytes: `${half(0)}  ${half(ROW / 2)}`.padEnd(ROW * 3),
      text: row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join(''),
    });
  }
  return rows;
}
