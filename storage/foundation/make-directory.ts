/**
 * Creates a directory with its parents, one by one. Node's own `recursive` retries for ever if a parent exists but nothing can be
 * created in it (below /proc). The process handles no signal meanwhile.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export function makeDirectory(path: string, mode: number): void {
  const above = dirname(path);
  if (above !== path && !existsSync(above)) makeDirectory(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have just created the directory.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
