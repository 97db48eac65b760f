/**
 * Compares the identity files of a data directory with the table that they are built from, without taking a partition. The audit uses it.
 * Every id of the table before `until` must be in the files of its partition; otherwise a re-sent event would count as new. The files may
 * hold a few more ids: those of events that the stores rejected.
 *
 * Both sides are summed first, part by part (the lowest 8 bits of the hash's upper half): the number of distinct hashes, and their sum
 * modulo 2^64. The hashes themselves are compared only if these sums differ.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { HashSum, toShardRange } from '../../core/metering/event/identity.ts';
import type { ClickHouseClient } from '../../storage/clickhouse/clickhouse.ts';
import {
  type HashSums,
  loadStoredSumsByPart,
  toHashRange,
  visitStoredHashes,
} from '../../storage/events/identities.ts';
import { IdentityFile, joinPairs, sortDistinct } from './identity-file.ts';
import { type Manifest, readManifest } from './identity-manifest.ts';

type PartitionFiles = {
  readonly partition: number;
  readonly partition_count: number;
  readonly installation: string;
  /** The files contain the ids of everything before this offset of the log. */
  readonly until: bigint;
  /** Number of distinct hashes in the files. */
  readonly count: number;
  readonly sum: bigint;
  readonly parts: readonly HashSums[];
};

type FilesAnswer = { partition: number } & ({ ok: true; files: PartitionFiles } | { ok: false; why: string });

/** Reads the files of each partition in `dir` (DATA_DIR/identities) and compares every byte with its checksum. */
export async function readIdentityFiles(dir: string): Promise<FilesAnswer[]> {
  const answers: FilesAnswer[] = [];
  for (const partition of partitionsIn(dir)) {
    try {
      answers.push({ partition, ok: true, files: await sumsOfFiles(partitionFolder(dir, partition)) });
    } catch (error) {
      answers.push({ partition, ok: false, why: (error as Error).message });
    }
  }
  return answers;
}

/** Result of the comparison. `missing` is the number of known ids that would count as new; it must be 0. */
type IdentityComparison = { count: number; stored: number; missing: number; more: number };

/** Compares the files of one partition with the table. */
export async function compareIdentityFiles(
  clickhouse: ClickHouseClient,
  dir: string,
  files: PartitionFiles,
): Promise<IdentityComparison> {
  const range = {
    ...toHashRange(toShardRange(files.partition, files.partition_count)),
    partition: files.partition,
    from: 0n,
    before: files.until,
  };
  const stored = await loadStoredSumsByPart(clickhouse, range, files.parts.length);
  const compared = {
    count: files.count,
    stored: stored.reduce((all, { count }) => all + count, 0),
    missing: 0,
    more: 0,
  };
  for (const [part, sums] of stored.entries()) {
    const { count, sum } = files.parts[part]!;
    if (count === sums.count && sum === sums.sum) continue;
    const known = await hashesOfFiles(partitionFolder(dir, files.partition), part);
    await visitStoredHashes(clickhouse, { ...range, part, parts: files.parts.length }, (hash) => {
      if (!known.delete(hash)) compared.missing++;
    });
    compared.more += known.size;
  }
  return compared;
}

function partitionsIn(dir: string): number[] {
  if (!existsSync(dir)) return [];
  const names = readdirSync(dir).filter((name) => /^partition-\d+$/.test(name));
  return names.map((name) => Number(name.slice('partition-'.length))).sort((a, b) => a - b);
}

function partitionFolder(dir: string, partition: number): string {
  return join(dir, `partition-${partition}`);
}

async function sumsOfFiles(dir: string): Promise<PartitionFiles> {
  return withFiles(dir, async ({ files: _, until, ...partition }, files) => {
    const parts: HashSums[] = [];
    const all = new HashSum();
    for (let part = 0; part < (files[0]?.parts.length ?? 0); part++) {
      for (const file of files) await file.readFilter(part);
      const pairs = await pairsIn(files, part);
      const sums = new HashSum();
      for (let at = 0; at < pairs.length; at += 2) {
        sums.add(pairs[at]!, pairs[at + 1]!);
        all.add(pairs[at]!, pairs[at + 1]!);
      }
      parts.push({ count: sums.count, sum: sums.sum });
    }
    return { ...partition, until: BigInt(until), count: all.count, sum: all.sum, parts };
  });
}

async function hashesOfFiles(dir: string, part: number): Promise<Set<string>> {
  return withFiles(dir, async (_, files) => {
    const pairs = await pairsIn(files, part);
    const hashes = new Set<string>();
    for (let at = 0; at < pairs.length; at += 2) hashes.add(`${pairs[at]}.${pairs[at + 1]}`);
    return hashes;
  });
}

async function pairsIn(files: readonly IdentityFile[], part: number): Promise<Uint32Array> {
  return sortDistinct(joinPairs(await Promise.all(files.map((file) => file.readPairs(part)))));
}

const TRIES = 5;

/** Reads the files, and repeats the read if their manifest has changed, because a worker may replace files meanwhile. */
async function withFiles<Answer>(
  dir: string,
  work: (manifest: Manifest, files: readonly IdentityFile[]) => Promise<Answer>,
): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const manifest = readManifest(dir);
    if (!manifest) throw new Error(`${dir} has no manifest`);
    const files: IdentityFile[] = [];
    try {
      for (const { name, level: _, ...seal } of manifest.files)
        files.push(await IdentityFile.open(join(dir, name), seal));
      return await work(manifest, files);
    } catch (error) {
      const hasChanged = JSON.stringify(readManifest(dir)) !== JSON.stringify(manifest);
      if (!hasChanged || attempt === TRIES) throw error;
    } finally {
      for (const file of files) file.close();
    }
  }
}
