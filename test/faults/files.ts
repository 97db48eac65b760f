/** Files as a broken disk or an unfinished write leaves them. */
import { closeSync, fsyncSync, openSync, readSync, statSync, truncateSync, writeSync } from 'node:fs';

/** The end of the file is missing. */
export function tear(path: string, { keep }: { keep: number }): void {
  truncateSync(path, keep);
}

/** Bytes of the file are zeros; its length is as it was. To its end when no length is given. */
export function zero(path: string, { from, length }: { from: number; length?: number }): void {
  const size = statSync(path).size;
  const count = Math.min(length ?? size, size - from);
  if (count <= 0) throw new Error(`${path} has ${size} bytes, none behind ${from}`);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(count), 0, count, from);
  fsyncSync(file);
  closeSync(file);
}

/** One bit of the file is another. */
export function flip(path: string, { at }: { at: number }): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  byte[0]! ^= 1;
  writeSync(file, byte, 0, 1, at);
  fsyncSync(file);
  closeSync(file);
}
