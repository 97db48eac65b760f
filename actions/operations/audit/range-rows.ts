/**
 * Audit of the outcome of each record of the log. The rows of a range of offsets in `events`, `event_identities` and `event_outcomes` match
 * the counts of the ledger, each once. Raw rows and identities are of equal events at equal positions. A range enters the ledger after all
 * of its rows are written, and these rows never change. So the audit may run while other ranges arrive. A range with a difference is
 * checked again, and the finding names the first differing positions.
 */
import {
  findLedgerRange,
  type LogEventPosition,
  listSetAsideEvents,
  type OffsetRange,
  type SliceEventCounts,
} from '../../../storage/audit/ledger.ts';
import {
  type AuditedRowSum,
  countOutcomes,
  OUTCOMES,
  type Outcomes,
  type PositionedRows,
  sumIdentities,
  sumRawRows,
} from '../../../storage/audit/offset-ranges.ts';
import {
  countRowsFrom,
  findDuplicatePositions,
  findUnmatchedRows,
  type NamedPosition,
} from '../../../storage/audit/positions.ts';
import { LOG_TABLES } from '../../../storage/events/present.ts';
import { nextOffsets } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import type { AuditStores, Finding, FindingKind, OnFinding } from './findings.ts';

/** A range of the ledger, or a range that the ledger does not cover. */
export type AuditedRange = OffsetRange & { readonly settled?: SliceEventCounts };

/** Maximum number of events per batch of one partition: their distinct positions are counted in memory. */
const EVENTS_MAX = 2_000_000;

export type RangeCounts = { ranges: number; raw_rows: number; outcomes: number; identities: number };

/** Audits some ranges, in order. One query reads the identities of all ranges; other rows are read in batches. */
export async function auditRanges(
  stores: AuditStores,
  ranges: readonly AuditedRange[],
  found: OnFinding,
): Promise<RangeCounts> {
  const counts: RangeCounts = { ranges: ranges.length, raw_rows: 0, outcomes: 0, identities: 0 };
  const except = await listSetAsideEvents(stores.postgres, ranges);
  const identities = await sumIdentities(stores.clickhouse, ranges, except);
  let next = 0;
  for (const batch of batches(ranges)) {
    const raw = await sumRawRows(stores.clickhouse, batch, except);
    const outcomes = await countOutcomes(stores.clickhouse, batch);
    for (const [index, range] of batch.entries()) {
      const rows = { raw: raw[index]!, identities: identities[next++]!, outcomes: outcomes[index]! };
      counts.raw_rows += rows.raw.rows;
      counts.identities += rows.identities.rows;
      counts.outcomes += OUTCOMES.reduce((sum, outcome) => sum + rows.outcomes[outcome].rows, 0);
      if (!agrees(range, rows)) await recheckRange(stores, range, found);
    }
  }
  return counts;
}

function batches(ranges: readonly AuditedRange[]): AuditedRange[][] {
  const all: AuditedRange[][] = [];
  let events = 0;
  for (const range of ranges) {
    const last = all.at(-1);
    events += range.settled?.events ?? EVENTS_MAX;
    if (last && last[0]!.partition === range.partition && events <= EVENTS_MAX) last.push(range);
    else {
      all.push([range]);
      events = range.settled?.events ?? EVENTS_MAX;
    }
  }
  return all;
}

type RowsOfRange = { readonly raw: PositionedRows; readonly identities: AuditedRowSum; readonly outcomes: Outcomes };

function agrees({ settled }: AuditedRange, { raw, identities, outcomes }: RowsOfRange): boolean {
  if (raw.positions !== raw.rows || identities.rows !== raw.rows || identities.sum !== raw.sum) return false;
  if (settled === undefined) return true;
  return (
    raw.rows === settled.stored &&
    OUTCOMES.every((outcome) => {
      const { rows, positions } = outcomes[outcome];
      return rows === positions && positions === countExpected(settled, outcome);
    })
  );
}

function countExpected(
  { duplicates, conflicts, dead_letters }: SliceEventCounts,
  outcome: (typeof OUTCOMES)[number],
): number {
  return { duplicate: duplicates, conflict: conflicts, dead_letter: dead_letters }[outcome];
}

/** Checks a range again in its current bounds: the newest range of a partition may have grown. */
async function recheckRange(stores: AuditStores, range: AuditedRange, found: OnFinding): Promise<void> {
  const now: AuditedRange | undefined = range.settled ? await findLedgerRange(stores.postgres, range) : range;
  if (now === undefined) return;
  const except = await listSetAsideEvents(stores.postgres, [now]);
  const [raw] = await sumRawRows(stores.clickhouse, [now], except);
  const [identities] = await sumIdentities(stores.clickhouse, [now], except);
  const [outcomes] = await countOutcomes(stores.clickhouse, [now]);
  const report = (finding: Omit<Finding, 'partition' | 'from_offset' | 'to_offset'>) =>
    found({ ...finding, partition: now.partition, from_offset: String(now.from), to_offset: String(now.to) });
  const audit = { stores, range: now, report };
  await reportRawRows(audit, raw!);
  if (identities!.rows !== raw!.rows || identities!.sum !== raw!.sum) await reportUnmatched(audit, except);
  if (now.settled) await reportOutcomes(audit, now.settled, outcomes!);
}

type RangeAudit = {
  readonly stores: AuditStores;
  readonly range: AuditedRange;
  report(finding: Omit<Finding, 'partition' | 'from_offset' | 'to_offset'>): void;
};

async function reportRawRows(
  { stores, range, report }: RangeAudit,
  { rows, positions }: PositionedRows,
): Promise<void> {
  if (rows > positions) {
    const { total, first } = await findDuplicatePositions(stores.clickhouse, 'events', { range });
    const what = `rows of events too many: ${total} positions have more than one`;
    if (total > 0) report({ kind: 'raw_rows_doubled', count: rows - positions, first, what });
  }
  const { stored = positions } = range.settled ?? {};
  if (positions < stored)
    report({
      kind: 'raw_rows_missing',
      count: stored - positions,
      what: `events were stored, and ${positions} have a row`,
    });
  if (positions > stored)
    report({
      kind: 'raw_rows_extra',
      count: positions - stored,
      what: `rows of events too many: ${stored} were stored`,
    });
}

async function reportUnmatched(
  { stores, range, report }: RangeAudit,
  except: readonly LogEventPosition[],
): Promise<void> {
  const { without_identity, without_raw_row } = await findUnmatchedRows(stores.clickhouse, range, except);
  const reportTotal = (
    kind: FindingKind,
    { total, first }: { total: number; first: readonly NamedPosition[] },
    what: string,
  ) => {
    if (total > 0) report({ kind, count: total, first, what });
  };
  reportTotal('raw_rows_without_identity', without_identity, 'raw rows have no identity at their position');
  reportTotal('identities_without_raw_row', without_raw_row, 'identities have no raw row at their position');
}

async function reportOutcomes(
  { stores, range, report }: RangeAudit,
  settled: SliceEventCounts,
  found: Outcomes,
): Promise<void> {
  for (const outcome of OUTCOMES) {
    const { rows, positions } = found[outcome];
    const expected = countExpected(settled, outcome);
    if (positions < expected)
      report({
        kind: 'outcomes_missing',
        count: expected - positions,
        what: `of ${expected} rows ${outcome} are not there`,
      });
    if (positions > expected)
      report({
        kind: 'outcomes_extra',
        count: positions - expected,
        what: `rows ${outcome} too many: ${expected} were settled`,
      });
    if (rows === positions) continue;
    const { total, first } = await findDuplicatePositions(stores.clickhouse, 'event_outcomes', {
      range,
      outcome,
    });
    const what = `rows ${outcome} too many: ${total} positions have more than one (harmless)`;
    if (total > 0) report({ kind: 'outcomes_doubled', count: rows - positions, first, what });
  }
}

/**
 * Reports rows at offsets after every slice that was ever planned: Postgres was restored to an earlier moment than ClickHouse. The rows are
 * read before the plans, so that a slice in progress is no finding.
 */
export async function auditRowsAhead({ postgres, clickhouse }: AuditStores, found: OnFinding): Promise<void> {
  const reached = nextOffsets(await readProgress(postgres));
  for (const table of LOG_TABLES) {
    const ahead = await countRowsFrom(clickhouse, table, reached);
    if (ahead.length === 0) continue;
    const progress = await readProgress(postgres);
    const planned = new Map(
      progress.map(({ partition, next_offset, slice_to }) => [partition, greatest(next_offset, slice_to)]),
    );
    for (const { partition, last } of ahead) {
      if (last < (planned.get(partition) ?? 0n)) continue;
      const from = planned.get(partition) ?? 0n;
      const [behind] = (await countRowsFrom(clickhouse, table, new Map([...planned]))).filter(
        (row) => row.partition === partition,
      );
      if (behind === undefined) continue;
      const ends = { partition, from_offset: String(from), to_offset: String(last + 1n) };
      const what = `rows of ${table} stand behind offset ${from}, to which Postgres says the log was processed`;
      found({ kind: 'rows_ahead', count: behind.rows, ...ends, what });
    }
  }
}

function greatest(a: bigint, b: bigint | null): bigint {
  return b !== null && b > a ? b : a;
}
