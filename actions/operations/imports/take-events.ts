/**
 * Appends the imported rows to the log as events; the pipeline drops repeated ids. A row without an id gets one derived from the task and
 * the row number. So a worker that takes over appends the same events, and nothing counts twice.
 */
import { createHash } from 'node:crypto';
import { formatId } from '../../../core/foundation/id.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import { hashEventContent, hasSameContent, type SentContents } from '../../../core/metering/event/sent-contents.ts';
import { addTimestamp } from '../../../core/metering/event/timed.ts';
import { CONFLICT_FAULT, type ImportedEventRow, parseEventRow } from '../../../core/platform/import/event-row.ts';
import type { RowFault } from '../../../core/platform/import/row.ts';
import { findIdentities } from '../../../storage/events/identities.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { waitForPipeline } from '../../../storage/log/room.ts';
import { loadClock } from '../../../storage/models/schedule/environment-clock.ts';
import { appendEvents, toOneBody } from '../../metering/events/append-events.ts';
import { findReservedIds } from '../../metering/events/reserved-ids.ts';
import { type FileRow, toRowFault } from './rows.ts';

type ImportEventRow = ImportedEventRow | { readonly fault: RowFault };

/** Waits until the pipeline has room for the events, then returns each row as an event or its fault. */
export async function readEventRows(
  stores: Stores,
  scope: Scope,
  { rows, sent, signal }: { rows: readonly FileRow[]; sent: SentContents; signal: AbortSignal },
): Promise<readonly ImportEventRow[]> {
  const read = await parseEventRows(stores, scope, rows);
  await waitForPipeline(stores.log, signal);
  return rejectConflicts(stores, scope, { rows: read, sent });
}

/** Rejects rows whose id has other content in a stored event or in an earlier row. */
async function rejectConflicts(
  { clickhouse }: Stores,
  scope: Scope,
  { rows, sent }: { rows: readonly ImportEventRow[]; sent: SentContents },
): Promise<readonly ImportEventRow[]> {
  const ids = rows.flatMap((row) => ('text' in row && row.event_id !== undefined ? row.event_id : []));
  const hashes = new Set(ids.map((event_id) => hashIdentity({ ...scope, event_id })));
  const stored = (await findIdentities(clickhouse, [...hashes])).filter(
    ({ tenant_id, environment_id }) => tenant_id === scope.tenant_id && environment_id === scope.environment_id,
  );
  const owners = new Map(stored.map((row) => [row.event_id, row]));
  return rows.map((row) => {
    if (!('text' in row) || row.event_id === undefined) return row;
    const content = hashEventContent(row.text);
    const owner = owners.get(row.event_id);
    const isSame = owner ? hasSameContent(owner, content) : sent.add(row.event_id, content);
    return isSame ? row : { fault: CONFLICT_FAULT };
  });
}

export function parseEventRows(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  rows: readonly FileRow[],
): Promise<readonly ImportEventRow[]> {
  return rejectReservedIds(stores, scope, rows.map(readRow));
}

type EventRowBatch = {
  readonly task_id: string;
  readonly read: readonly ImportEventRow[];
  /** Number of rows of the file before this batch. */
  readonly before: number;
  /** Current time of the machine's clock. */
  readonly now: Date;
};

/** Resolves when the valid events are in the log. */
export async function appendEventRows(
  stores: Stores,
  scope: Scope,
  { task_id, read, before, now }: EventRowBatch,
): Promise<void> {
  const good = read.flatMap((row, index) => ('text' in row ? { ...row, number: before + index + 1 } : []));
  if (good.length === 0) return;
  const clock = await loadClock(stores.postgres, scope);
  const events = good.map(({ text, event_id }) => ({ bytes: toEventBytes(text, clock?.now), event_id }));
  const generateId = (index: number) => computeRowEventId(task_id, good[index]!.number);
  await appendEvents(stores.log, scope, { ...toOneBody(events), now, generateId });
}

function readRow(row: FileRow): ImportEventRow {
  if ('fault' in row) return row;
  try {
    return parseEventRow(row);
  } catch (error) {
    return { fault: toRowFault(error) };
  }
}

async function rejectReservedIds(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  rows: readonly ImportEventRow[],
): Promise<readonly ImportEventRow[]> {
  const ids = rows.map((row) => ('text' in row ? row.event_id : undefined));
  const reserved = await findReservedIds(postgres, scope, ids);
  return rows.map((row, index) => {
    const found = reserved.get(index);
    if (found === undefined) return row;
    const { field, why } = found;
    return { fault: { field, code: 'validation_error', message: `${field}: ${why}` } };
  });
}

/** Returns the bytes of an event. In an environment with a test clock, an event without a timestamp gets that clock's time. */
function toEventBytes(text: string, now: Date | undefined): Buffer {
  const bytes = Buffer.from(text);
  if (now === undefined) return bytes;
  const timed = addTimestamp(bytes.toString('latin1'), { start: 0, end: bytes.length }, now.getTime());
  return Buffer.from(timed, 'latin1');
}

const TIME_BYTES = 6;

/**
 * Derives an id from the task and the row, so that a repeated import of the row counts once (docs/rules/imports.md,
 * "Events").
 */
function computeRowEventId(task_id: string, row: number): string {
  const hash = createHash('sha256').update(`${task_id}\n${row}`).digest();
  return formatId('event', hash.readUIntBE(0, TIME_BYTES), hash.subarray(TIME_BYTES));
}
