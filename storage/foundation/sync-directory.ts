/** A new or renamed file survives a power loss only after its directory is synced to the disk. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
