/**
 * Audit of the records: every accepted event is in the stores once, or has another outcome. Each check has its own findings and can
 * run alone; `usage.ts` recounts the bucket rows. Everything is read in ranges of the log or in the order of a table, so memory does
 * not grow with the data. Data may arrive meanwhile.
 */
import { listLedgerRanges, listUncountedRanges, type OffsetRange } from '../../../storage/audit/ledger.ts';
import { countRawRows } from '../../../storage/audit/offset-ranges.ts';
import type { ExportSettings } from '../../reporting/exports/destinations.ts';
import { auditCorrections } from './corrections.ts';
import { auditCredits } from './credits.ts';
import type { AuditStores } from './findings.ts';
import { type CheckName, type CheckReport, type Finding, type OnFinding, toCheckName } from './findings.ts';
import { auditHashes, auditIds } from './identities.ts';
import { auditIdentityFiles, type IdentityFiles } from './identity-files.ts';
import { auditIntegrations } from './integrations.ts';
import { auditInvoiceUsage } from './invoice-usage.ts';
import { auditInvoices } from './invoices.ts';
import { auditEmbeddedLog, auditLedger, auditLogBounds, type LogBounds } from './ledger.ts';
import { type AuditedRange, auditRanges, auditRowsAhead, type RangeCounts } from './range-rows.ts';
import { auditReservations } from './reservations.ts';
import { auditRevenue } from './revenue.ts';
import { auditRunning } from './running.ts';
import { auditSecondCount } from './second-count.ts';
import { auditTasks } from './tasks.ts';
import { auditUninvoiced } from './uninvoiced.ts';

export type AuditRecordsInput = {
  readonly checks: ReadonlySet<CheckName>;
  /** The log in Postgres, or the bounds of another log's partitions; null if they cannot be read. */
  readonly log: 'embedded' | (() => Promise<readonly LogBounds[]>) | null;
  /** Files of known ids of the workers on this machine. */
  readonly identityFiles: () => Promise<readonly IdentityFiles[]>;
  /** Location of the exports, and whether files in S3 are read, too. Without it no file is read. */
  readonly exports?: { readonly settings: ExportSettings; readonly reads_stores: boolean };
  /** Returns numbers in [0, 1). */
  readonly chance: () => number;
};

const NO_FILES = { settings: { EXPORT_ALLOW_PRIVATE_ADDRESSES: false, SECRETS_KEYS: [] }, reads_stores: false };
type CheckCounts = Readonly<Record<string, number>>;

/** Runs the checks in a fixed order: each check may explain the findings of the next. */
export async function auditRecords(
  stores: AuditStores,
  input: AuditRecordsInput,
  found: OnFinding,
): Promise<CheckReport[]> {
  const counted = new Map<CheckName, number>();
  const counting = (finding: Finding) => {
    const check = toCheckName(finding.kind);
    counted.set(check, (counted.get(check) ?? 0) + 1);
    found(finding);
  };
  const results: (readonly [CheckName, CheckCounts | string])[] = [];
  const wants = (check: CheckName) => input.checks.has(check);
  if (wants('ledger')) results.push(['ledger', await auditLedger(stores, counting)]);
  if (wants('log')) results.push(['log', await auditLog(stores, input.log, counting)]);
  if (wants('raw_rows') || wants('outcomes') || wants('identities'))
    results.push(...(await auditLogRows(stores, input, counting)));
  if (wants('corrections')) results.push(['corrections', await auditCorrections(stores, counting)]);
  if (wants('second_count'))
    results.push([
      'second_count',
      await auditSecondCount(stores, { days: COUNTED_DAYS, chance: input.chance }, counting),
    ]);
  if (wants('identity_files'))
    results.push(['identity_files', auditIdentityFiles(await input.identityFiles(), counting)]);
  if (wants('credits')) results.push(['credits', await auditCredits(stores, counting)]);
  if (wants('invoices')) {
    const sums = await auditInvoices(stores, counting);
    results.push(['invoices', { ...sums, ...(await auditInvoiceUsage(stores, counting)) }]);
  }
  if (wants('uninvoiced')) results.push(['uninvoiced', await auditUninvoiced(stores, counting)]);
  if (wants('integrations')) results.push(['integrations', await auditIntegrations(stores, counting)]);
  if (wants('running')) results.push(['running', await auditRunning(stores, counting)]);
  if (wants('revenue')) results.push(['revenue', await auditRevenue(stores, counting)]);
  if (wants('reservations')) results.push(['reservations', await auditReservations(stores, counting)]);
  if (wants('tasks'))
    results.push(['tasks', await auditTasks(stores, { ...(input.exports ?? NO_FILES), found: counting })]);
  return results.map(([check, what]) => {
    const differences = counted.get(check) ?? 0;
    if (typeof what === 'string') return { check, counts: {}, differences, skipped: what };
    return { check, counts: what, differences };
  });
}

async function auditLog(
  stores: AuditStores,
  log: AuditRecordsInput['log'],
  found: OnFinding,
): Promise<CheckCounts | string> {
  if (log === null) return 'the log cannot be asked: set KAFKA_BROKERS';
  return log === 'embedded' ? auditEmbeddedLog(stores, found) : auditLogBounds(stores, log, found);
}

/** Number of random days, each of one meter, that the second count recounts in addition to the days of corrected events. */
const COUNTED_DAYS = 20;

const HASH_SAMPLE = { times: 32, ids: 500 };

/** Audits the rows of the log in one read for three checks; findings of checks that are not requested are dropped. */
async function auditLogRows(
  stores: AuditStores,
  { checks, chance }: AuditRecordsInput,
  found: OnFinding,
): Promise<(readonly [CheckName, CheckCounts])[]> {
  const wanted: OnFinding = (finding) => {
    if (checks.has(toCheckName(finding.kind))) found(finding);
  };
  const sum: RangeCounts = { ranges: 0, raw_rows: 0, outcomes: 0, identities: 0 };
  for await (const ranges of allRanges(stores)) {
    const counts = await auditRanges(stores, ranges, wanted);
    for (const key of Object.keys(sum) as (keyof RangeCounts)[]) sum[key] += counts[key];
  }
  await auditRowsAhead(stores, wanted);
  const results: (readonly [CheckName, CheckCounts])[] = [
    ['raw_rows', { ranges: sum.ranges, rows: sum.raw_rows }],
    ['outcomes', { ranges: sum.ranges, rows: sum.outcomes }],
  ];
  if (checks.has('identities')) {
    const ids = await auditIds(stores, found);
    results.push(['identities', { ...ids, ...(await auditHashes(stores, { ...HASH_SAMPLE, chance }, found)) }]);
  }
  return results.filter(([check]) => checks.has(check));
}

/** Maximum number of ranges of the ledger, each with a million events, that one read of the table of identities serves. */
const RANGES_MAX = 1_000;

async function* allRanges(stores: AuditStores): AsyncGenerator<AuditedRange[]> {
  for (const range of await listUncountedRanges(stores.postgres))
    yield* chunkRanges(await splitUncounted(stores, range));
  for (let after: OffsetRange | null = null; ; ) {
    const ranges = await listLedgerRanges(stores.postgres, { after, limit: RANGES_MAX });
    if (ranges.length > 0) yield ranges;
    if (ranges.length < RANGES_MAX) return;
    after = ranges.at(-1)!;
  }
}

function* chunkRanges(ranges: readonly AuditedRange[]): Generator<AuditedRange[]> {
  for (let from = 0; from < ranges.length; from += RANGES_MAX) yield ranges.slice(from, from + RANGES_MAX);
}

const ROWS_MAX = 1_000_000;
const PIECES = 256n;

/** Splits a range that the ledger does not cover into pieces of at most a million rows, if its records allow it. */
async function splitUncounted(
  { clickhouse }: Pick<AuditStores, 'clickhouse'>,
  range: OffsetRange,
): Promise<OffsetRange[]> {
  const { partition, from, to } = range;
  const step = (to - from + PIECES - 1n) / PIECES;
  const pieces: OffsetRange[] = [];
  for (let at = from; at < to; at += step) pieces.push({ partition, from: at, to: at + step < to ? at + step : to });
  const rows = await countRawRows(clickhouse, pieces);
  const all: { range: OffsetRange; rows: number }[] = [];
  for (const [index, piece] of pieces.entries()) {
    const count = rows[index]!;
    const last = all.at(-1);
    if (count > ROWS_MAX && step > 1n) {
      for (const smaller of await splitUncounted({ clickhouse }, piece)) all.push({ range: smaller, rows: ROWS_MAX });
    } else if (last && last.rows + count <= ROWS_MAX) {
      last.range = { ...last.range, to: piece.to };
      last.rows += count;
    } else all.push({ range: piece, rows: count });
  }
  return all.map((each) => each.range);
}
