/**
 * A directory with those above it, part by part: where nothing can be made, though what is above is there (below /proc), Node's own
 * `recursive` tries again for ever, and the process takes no signal meanwhile.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export function makeDirectory(path: string, mode: number): void {
  const above = dirname(path);
  if (above !== path && !existsSync(above)) makeDirectory(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Also made by somebody else in this moment.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
