/** A new or renamed file is found after a power loss when its directory is on the disk. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
