/** The files that hold the ids of a partition, and the offset of the log that they reach. Format: one line with the checksum, then JSON. */

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { syncDirectory } from '../../storage/foundation/sync-directory.ts';
import { DamagedFile, type FileSeal } from './identity-file.ts';

export type Manifest = {
  readonly installation: string;
  readonly partition: number;
  readonly partition_count: number;
  /** The files contain the ids of everything before this offset of the log. */
  readonly until: string;
  readonly files: readonly (FileSeal & { readonly name: string; readonly level: number })[];
};

const MANIFEST = 'manifest.json';

/** Reads the manifest; undefined if there is none. Throws if the bytes differ from those written. */
export function readManifest(dir: string): Manifest | undefined {
  const path = join(dir, MANIFEST);
  if (!existsSync(path)) return undefined;
  const content = readFileSync(path, 'utf8');
  const text = content.slice(CHECK_LENGTH);
  if (content.slice(0, CHECK_LENGTH) !== computeChecksum(text))
    throw new DamagedFile(`${path} is damaged, or of an older version`);
  return JSON.parse(text) as Manifest;
}

/**
 * Replaces the manifest atomically. The directory is synced first, so that the listed files survive a crash under their
 * final names.
 */
export function writeManifest(dir: string, manifest: Manifest): void {
  const draft = join(dir, `${MANIFEST}.draft`);
  const text = JSON.stringify(manifest);
  writeFileSync(draft, computeChecksum(text) + text, { mode: 0o600, flush: true });
  syncDirectory(dir);
  renameSync(draft, join(dir, MANIFEST));
  syncDirectory(dir);
}

const CHECK_LENGTH = 9;

function computeChecksum(text: string): string {
  return `${crc32(text).toString(16).padStart(8, '0')}\n`;
}
