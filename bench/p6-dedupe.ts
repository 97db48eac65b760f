/**
 * P6: the cost of recognizing repeated ids. CPU: the steps of the pipeline on the same records with and without deduplication, and the
 * storage of identities, which serves only deduplication. Memory: bytes per id at every size of the set. Correctness: a seen id is never
 * taken for new; an id that only may have been seen is decided by a query. `--full` uses 10^8 ids.
 */

import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IdentityHasher } from '../core/metering/event/identity.ts';
import { compileMeters } from '../core/metering/match.ts';
import { IdentityMemory, type ReadIdentities } from '../pipeline/identity/identity-memory.ts';
import { IdentitySet } from '../pipeline/identity/identity-set.ts';
import { dedupe } from '../pipeline/steps/dedupe.ts';
import { meterEvents } from '../pipeline/steps/meter-events.ts';
import { EventReader, type ReadEvent } from '../pipeline/steps/read-events.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import { encodeNativeBlock } from '../storage/events/native.ts';
import { writeRows } from '../storage/events/rows.ts';
import { bucketRowsTarget, EVENT_IDENTITIES, EVENTS } from '../storage/events/tables.ts';
import type { LogRecord } from '../storage/log/log.ts';
import { startService } from './processes.ts';
import { check, claim, fixed, flag, hasFlag, median, micros, say } from './report.ts';
import { bulkBodies, meterDefinitions } from './workload.ts';

const SLICE = 50_000;
const SCOPE = { tenant_id: 'tenant', environment_id: 'environment' };

export async function run(): Promise<void> {
  const known = flag('ids', 5_000_000);
  const runs = flag('runs', 7);
  await openingFiles(flag('files', 5_000_000));
  memoryAndVerdicts(hasFlag('full') ? 100_000_000 : flag('verdicts', 10_000_000));
  await throughput({ known, runs });
}

/** A start reads all identity files and compares every byte with its checksum; it does not query the ids in them. */
async function openingFiles(count: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'farthing-p6-'));
  const place = { partition: 0, partition_count: 1, installation: 'bench' };
  const hasher = new IdentityHasher(SCOPE);
  const read: ReadIdentities = async ({ from }, visit) => {
    for (let index = Number(from); index < count; index++) {
      hasher.hash(`evt_${index}`);
      const pause = visit(hasher.high, hasher.low);
      if (pause) await pause;
    }
  };
  try {
    const open = (filter_bytes: number) =>
      IdentityMemory.open({ dir, hot_ids: 4_000_000, filter_bytes }, place, { next: BigInt(count), read });
    (await open(0)).close();
    for (const filter_bytes of [256 * 1024 * 1024, 0]) {
      const began = performance.now();
      const memory = await open(filter_bytes);
      const ms = performance.now() - began;
      const { ids, files } = memory.old;
      memory.close();
      const bytes = readdirSync(join(dir, 'partition-0'))
        .map((name) => statSync(join(dir, 'partition-0', name)).size)
        .reduce((sum, size) => sum + size, 0);
      const where = filter_bytes === 0 ? 'left on the disk' : 'in memory';
      say(
        `  opening ${fixed(ids / 1e6, 0)} M ids in ${files} files, filters ${where}: ${fixed(ms, 0)} ms, ${fixed(bytes / 1000 / ms, 0)} MB/s`,
      );
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Ids from a counter; every hundredth is sent again, at once or much later. */
function memoryAndVerdicts(count: number): void {
  const set = new IdentitySet();
  const hasher = new IdentityHasher(SCOPE);
  let wrong = 0;
  let lookups = 0;
  let most = 0;
  const began = process.cpuUsage();
  for (let index = 0; index < count; index++) {
    hasher.hash(`evt_${index}`);
    if (!set.add(hasher.high, hasher.low)) lookups++;
    if (index % 100 === 0) {
      hasher.hash(`evt_${index % 200 === 0 ? index : index / 2}`);
      if (set.add(hasher.high, hasher.low)) wrong++;
    }
    if (index % 10_007 === 0 && index > 100_000) most = Math.max(most, set.bytes / set.size);
  }
  const { user, system } = process.cpuUsage(began);
  say(
    `  ${fixed(count / 1e6, 0)} M ids: ${fixed((user + system) / count, 2)} µs each, ${lookups} new ids needed the exact look-up`,
  );
  claim('P6 memory', `at most ${fixed(most)} bytes per id at any size`, '16', most <= 16);
  claim('P6 verdicts', `${wrong} wrong of ${fixed((count * 1.01) / 1e6, 0)} M`, '0', wrong === 0);
}

async function throughput({ known, runs }: { known: number; runs: number }): Promise<void> {
  const service = await startService();
  const clickhouse = connectClickHouse(await service.call<string>({ what: 'clickhouse_url' }));
  try {
    const seen = new IdentitySet();
    const hasher = new IdentityHasher(SCOPE);
    for (let index = 0; index < known; index++) {
      hasher.hash(`old_${index}`);
      seen.add(hasher.high, hasher.low);
    }
    const index = compileMeters(meterDefinitions().map((meter, at) => ({ ...meter, id: `meter_${at}` })));
    const slice = async (number: number, isDeduped: boolean) => {
      const records = recordsOf(number);
      const before = { own: process.cpuUsage(), engine: service.cpu().clickhouse };
      const { events } = new EventReader().read(records);
      const accepted = isDeduped ? (await dedupe(clickhouse, seen, events)).new_events : events;
      check(accepted.length === SLICE, `${accepted.length} of ${SLICE} events are new`);
      const attempt = { writer: 'bench', attempt: BigInt(number) };
      const { bucket_rows: buckets } = await meterEvents(accepted as ReadEvent[], () => index);
      await writeRows(clickhouse, EVENTS, { rows: accepted, attempt });
      if (isDeduped) await writeRows(clickhouse, EVENT_IDENTITIES, { rows: accepted, attempt });
      await writeRows(
        clickhouse,
        bucketRowsTarget(() => 1),
        { rows: buckets, attempt },
      );
      await service.waitUntilMerged();
      const { user, system } = process.cpuUsage(before.own);
      return micros((user + system) / 1e6 + service.cpu().clickhouse - before.engine, SLICE);
    };
    const costs: { with: number[]; without: number[] } = { with: [], without: [] };
    for (let run = 0; run <= runs; run++) {
      const isFirst = run === 0;
      const without = await slice(run * 2, false);
      const withIt = await slice(run * 2 + 1, true);
      if (isFirst) continue;
      costs.without.push(without);
      costs.with.push(withIt);
    }
    const ratio = median(costs.without) / median(costs.with);
    say(
      `  pipeline and ClickHouse: ${fixed(median(costs.without))} µs/event without, ${fixed(median(costs.with))} with identities, ${known} ids known`,
    );
    const encoded = encodeNativeBlock(EVENT_IDENTITIES.columns, new EventReader().read(recordsOf(999)).events);
    say(
      `  stored identities: ${fixed(encoded.reduce((sum, piece) => sum + piece.length, 0) / SLICE)} bytes per event on their way`,
    );
    claim('P6 throughput', `${fixed(ratio, 2)} of that without`, '0.9', ratio >= 0.9);
  } finally {
    await clickhouse.close();
    await service.stop();
  }
}

function recordsOf(number: number): LogRecord[] {
  return [...bulkBodies(1000 + number, SLICE, 1000)].map((body, index) => ({
    ...SCOPE,
    partition: 0,
    kind: 'events',
    received_at_us: 1_788_000_000_000_000,
    generated_ids: null,
    event_count: 1000,
    body: body.subarray(body.indexOf('['), body.length - 1),
    offset: BigInt(number * 1000 + index),
  }));
}
