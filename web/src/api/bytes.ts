/** Byte strings of REST as bytes. */
import type { ByteString } from './types';

export function byteArray(bytes: ByteString): Uint8Array {
  if (typeof bytes === 'string') return new TextEncoder().encode(bytes);
  return Uint8Array.from(atob(bytes.base64), (character) => character.charCodeAt(0));
}
