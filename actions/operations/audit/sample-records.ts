/**
 * A small part of the record audit that is cheap enough to run continuously: the checks within Postgres, the newest ranges of the
 * ledger and sometimes an older one, the newest corrections, and some ids. The choice is random, so that everything is checked over
 * time.
 */

import { countIdentities, type HashRange } from '../../../storage/audit/ids.ts';
import {
  findLedgerRangeUpTo,
  type LedgerRange,
  listLedgerRanges,
  listNewestLedgerRanges,
} from '../../../storage/audit/ledger.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { EmbeddedLog } from '../../../storage/log/embedded/embedded.ts';
import type { EventLog } from '../../../storage/log/log.ts';
import { auditCorrections } from './corrections.ts';
import { sampleCredits } from './credits.ts';
import type { OnFinding } from './findings.ts';
import { auditHashes, auditIds } from './identities.ts';
import { sampleInvoices } from './invoices.ts';
import { auditEmbeddedLog, auditLedger, auditLogBounds } from './ledger.ts';
import { auditRanges } from './range-rows.ts';
import { sampleReservations } from './reservations.ts';
import { auditSecondCount } from './second-count.ts';
import { sampleTasks } from './tasks.ts';
import { sampleUninvoiced } from './uninvoiced.ts';

type SampledCounts = { readonly ranges: number; readonly records: number };

const CORRECTIONS = 500;
/** Size of the second count: the newest corrected events, and random days. */
const COUNTED_TWICE = { newest: 20, days: 2 };
const HASH_SAMPLE = { times: 2, ids: 200 };

export async function sampleRecords(stores: Stores, chance: () => number, found: OnFinding): Promise<SampledCounts> {
  await auditLedger(stores, found);
  await sampleLog(stores, found);
  await sampleCredits(stores, found);
  await sampleInvoices(stores, found);
  await sampleUninvoiced(stores, found);
  await sampleReservations(stores, found);
  await sampleTasks(stores, found);
  const ranges = await chooseRanges(stores, chance);
  const counts = await auditRanges(stores, ranges, found);
  await auditIds(stores, found, await chooseHashRange(stores, chance));
  await auditHashes(stores, { ...HASH_SAMPLE, chance }, found);
  await auditCorrections(stores, found, { newest: CORRECTIONS });
  await auditSecondCount(stores, { ...COUNTED_TWICE, chance }, found);
  return { ranges: ranges.length, records: counts.raw_rows + counts.outcomes };
}

async function sampleLog(stores: Stores, found: OnFinding): Promise<void> {
  if (stores.log instanceof EmbeddedLog) await auditEmbeddedLog(stores, found);
  else await auditLogBounds(stores, () => loadLogBounds(stores.log), found);
}

/**
 * Loads the bounds of the log. `low` is 0, because only the worker reads the log's beginning; deleted records are therefore not audited
 * here.
 */
async function loadLogBounds(log: EventLog) {
  return (await log.lag()).map(({ partition, end_offset }) => ({ partition, low: 0n, end: end_offset }));
}

const NEWEST_SHARE = 0.75;
const EVENTS_MAX = 2_000_000;

/**
 * Chooses mostly the newest ranges of some partitions: failures are most likely there, and queries of new rows are
 * fast.
 */
async function chooseRanges({ postgres }: Stores, chance: () => number): Promise<LedgerRange[]> {
  const newest = await listNewestLedgerRanges(postgres);
  if (newest.length === 0) return [];
  const first = Math.floor(chance() * newest.length);
  const turned = [...newest.slice(first), ...newest.slice(0, first)];
  if (chance() < NEWEST_SHARE) return takeRangesUpTo(turned, EVENTS_MAX);
  const { partition, to } = turned[0]!;
  const offset = BigInt(Math.floor(chance() * Number(to)));
  const some = await findLedgerRangeUpTo(postgres, { partition, offset });
  if (some) return [some];
  return listLedgerRanges(postgres, { after: { partition, from: -1n, to: 0n }, limit: 1 });
}

function takeRangesUpTo(ranges: readonly LedgerRange[], events_max: number): LedgerRange[] {
  let events = 0;
  const taken = ranges.filter(({ settled }, index) => {
    events += settled.events;
    return index === 0 || events <= events_max;
  });
  return taken.sort((a, b) => a.partition - b.partition);
}

const IDS_MAX = 1_000_000;
const ALL = 1n << 64n;

/** Chooses about a million neighbours in the order of hashes; all if there are fewer. */
async function chooseHashRange({ clickhouse }: Stores, chance: () => number): Promise<HashRange> {
  const parts = BigInt(Math.max(1, Math.ceil((await countIdentities(clickhouse)) / IDS_MAX)));
  const width = ALL / parts;
  const first = width * BigInt(Math.floor(chance() * Number(parts)));
  return { first, last: first + width - 1n };
}
