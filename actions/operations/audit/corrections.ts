/**
 * Audit of corrections. Every correction that Postgres marks as applied is in ClickHouse, with equal number, action, event and
 * content. Its own log position and that of its event are correct. ClickHouse contains no correction that was not requested or did
 * not take effect. Only a correction in progress may be in one store alone. The recount checks the effect of corrections on the
 * bucket rows.
 */
import { indexById } from '../../../core/foundation/by-id.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { scopeKey } from '../../../core/foundation/scope.ts';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import {
  type AuditedStoredCorrection,
  type CorrectionRow,
  findSequenceBeforeNewest,
  listRequestedCorrections,
  listStoredCorrections,
  loadCorrectionStates,
  type RequestedCorrection,
} from '../../../storage/audit/corrections.ts';
import { findIdentities } from '../../../storage/events/identities.ts';
import { nextOffsets } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import { type AcceptedContent, applyCorrections } from './accepted-contents.ts';
import type { AuditStores } from './findings.ts';
import { type FindingKind, formatEventId, type OnFinding } from './findings.ts';

const PAGE = 2_000;
/**
 * Maximum number of stored rows that are compared with a page of requested corrections. If there are more, most of them were never
 * requested.
 */
const STORED_MAX = 5 * PAGE;
const LAST = (1n << 64n) - 1n;

/** Audits all corrections, or the `newest` ones. */
export async function auditCorrections(
  stores: AuditStores,
  found: OnFinding,
  { newest }: { newest?: number } = {},
): Promise<{ corrections: number }> {
  let after = newest === undefined ? 0n : await findSequenceBeforeNewest(stores.postgres, newest);
  for (let corrections = 0; ; ) {
    // The progress is read before the rows: a correction at an offset that it has passed is therefore complete, and not in progress.
    const progress = await readProgress(stores.postgres);
    const requested = await listRequestedCorrections(stores.postgres, { after, limit: PAGE });
    const isLast = requested.length < PAGE;
    const until = isLast ? LAST : BigInt(requested.at(-1)!.id);
    const stored = await listStoredCorrections(stores.clickhouse, { after, until, limit: STORED_MAX });
    const passed = nextOffsets(progress);
    await compareCorrections(stores, { requested, stored, passed }, found);
    corrections += requested.length;
    if (isLast) return { corrections };
    after = until;
  }
}

type CorrectionComparison = {
  readonly requested: readonly RequestedCorrection[];
  readonly stored: readonly AuditedStoredCorrection[];
  readonly passed: ReadonlyMap<number, bigint>;
};

async function compareCorrections(
  stores: AuditStores,
  { requested, stored, passed }: CorrectionComparison,
  found: OnFinding,
): Promise<void> {
  const written = indexById(stored);
  const known = indexById(requested);
  const report: ReportCorrection = (kind, row, what) => {
    const isMendable = kind !== 'correction_extra' && known.get(row.id)?.state === 'applied';
    found({
      kind,
      count: 1,
      what: `${what}: ${row.action} ${row.id} of ${formatEventId(row)}`,
      ...(isMendable ? { correction_id: row.id } : {}),
    });
  };
  for (const row of requested) {
    if (row.state === 'applied' && !written.has(row.id))
      report('correction_missing', row, 'a correction is called applied and is not there');
  }
  const misplaced = await findMisplaced(stores, stored);
  const contents = await acceptedContents(stores, requested);
  for (const row of stored) {
    const why = whatDiffers(row, known.get(row.id), contents.get(row.id)) ?? misplaced.get(row);
    if (why !== undefined) report('correction_differs', row, why);
  }
  await reportUnapplied(stores, { stored, known, passed }, report);
}

type ReportCorrection = (kind: FindingKind, row: CorrectionRow, what: string) => void;

/** Returns the content of an event after each of its corrections that took effect, by correction. */
async function acceptedContents(
  stores: AuditStores,
  requested: readonly RequestedCorrection[],
): Promise<Map<string, AcceptedContent>> {
  const contents = new Map<string, AcceptedContent>();
  for (const some of groupBy(requested, scopeKey).values()) {
    const event_ids = [...new Set(some.map(({ event_id }) => event_id))];
    for (const steps of (await applyCorrections(stores, some[0], event_ids)).values())
      for (const step of steps) if (step.correction_id !== null) contents.set(step.correction_id, step);
  }
  return contents;
}

/** Returns the difference between the stored and the accepted correction; undefined if there is none, or if it cannot be determined. */
function whatDiffers(
  row: AuditedStoredCorrection,
  requested: RequestedCorrection | undefined,
  content: AcceptedContent | undefined,
): string | undefined {
  if (requested === undefined) return undefined;
  if (describeCorrection(requested) !== describeCorrection(row))
    return `what was asked for is another (${requested.action} of ${formatEventId(requested)})`;
  if (requested.state !== 'applied') return undefined;
  if (
    requested.log_offset !== null &&
    (requested.log_partition !== row.partition || requested.log_offset !== row.offset)
  )
    return `it stands at ${row.partition}/${row.offset} of the log, and was met at ${requested.log_partition}/${requested.log_offset}`;
  // Readers ignore the content of a void.
  if (content === undefined || row.action === 'void') return undefined;
  const fields = CONTENT_FIELDS.filter((field) => content[field] !== row[field]);
  if (content.timestamp_us !== Number(row.at_us)) return 'its timestamp is not the one that was accepted';
  return fields.length > 0 ? `its ${fields.join(', ')} are not those that were accepted` : undefined;
}

const CONTENT_FIELDS = ['external_customer_id', 'event_name', 'customer_id', 'source', 'properties'] as const;

/**
 * Reports corrections in ClickHouse that are not applied according to Postgres. Their states are read again first, because a correction may
 * have been applied since, or be in progress.
 */
async function reportUnapplied(
  { postgres }: AuditStores,
  {
    stored,
    known,
    passed,
  }: Pick<CorrectionComparison, 'stored' | 'passed'> & { known: ReadonlyMap<string, RequestedCorrection> },
  report: ReportCorrection,
): Promise<void> {
  const open = stored.filter(({ id }) => known.get(id)?.state !== 'applied');
  if (open.length === 0) return;
  const states = await loadCorrectionStates(
    postgres,
    open.map(({ id }) => id),
  );
  for (const row of open) {
    const state = states.get(row.id);
    if (state === 'applied') continue;
    // The pipeline has not committed the slice with the correction yet, so the row is no difference.
    if (state === 'requested' && BigInt(row.offset) >= (passed.get(row.partition) ?? 0n)) continue;
    report('correction_extra', row, `a correction stands there that ${state ? `is ${state}` : 'nobody asked for'}`);
  }
}

/** Finds corrections that store a wrong log position of their event. Readers compare that position. */
async function findMisplaced(
  { clickhouse }: AuditStores,
  stored: readonly AuditedStoredCorrection[],
): Promise<Map<AuditedStoredCorrection, string>> {
  const owners = groupBy(await findIdentities(clickhouse, [...new Set(stored.map(hashIdentity))]), formatEventId);
  const misplaced = new Map<AuditedStoredCorrection, string>();
  for (const row of stored) {
    const isThere = (owners.get(formatEventId(row)) ?? []).some(
      ({ partition, offset, position }) =>
        partition === row.event_partition && offset === Number(row.event_offset) && position === row.event_position,
    );
    const where = `${row.event_partition}/${row.event_offset}.${row.event_position}`;
    if (!isThere) misplaced.set(row, `its event does not stand at ${where}, where it says`);
  }
  return misplaced;
}

function describeCorrection({ action, ...row }: CorrectionRow): string {
  return `${action} ${formatEventId(row)}`;
}
