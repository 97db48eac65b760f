/**
 * Table `event_corrections` in ClickHouse: contents that replace a corrected event wherever events are read (`raw-events.ts`, and the view
 * `current_events`). The raw row itself remains unchanged.
 */

import { groupBy } from '../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { CorrectionAction } from '../../core/metering/correction.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';
import { quoteText } from '../clickhouse/literals.ts';
import { loadAcceptedEvents, toIdParams, WITH_IDS } from './by-id.ts';
import { instantColumn, labelColumn, textColumn, uint16Column, uint32Column, uint64Column } from './native.ts';
import { writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';
import type { WriteAttempt } from './write-fence.ts';

export type EventContent = {
  readonly external_customer_id: string;
  readonly event_name: string;
  readonly timestamp_us: Microseconds;
  readonly customer_id: string;
  readonly source: string;
  /** JSON text of the object. */
  readonly properties: string;
};

/** The event's own position in the log. It is copied and never derived from the id, because the number of partitions may have grown. */
type EventLogPosition = {
  readonly event_partition: number;
  readonly event_offset: number;
  readonly event_position: number;
};

export type StoredEventVersion = EventContent & EventLogPosition & { readonly received_at_us: Microseconds };

export type CorrectionPosition = { readonly partition: number; readonly offset: number };

export type AppliedCorrection = StoredEventVersion &
  CorrectionPosition &
  Scope & {
    readonly event_id: string;
    readonly sequence: string;
    readonly action: CorrectionAction;
  };

type StoredEventCorrection = StoredEventVersion & {
  readonly sequence: bigint;
  readonly action: string;
  readonly log_position: CorrectionPosition;
  /** Hash of the row, computed by the store: equal rows have equal hashes. */
  readonly fingerprint: string;
};

/** The accepted event and its stored corrections, oldest first. */
export type EventHistory = {
  readonly original: StoredEventVersion;
  readonly corrections: readonly StoredEventCorrection[];
};

/** Histories of the events that were accepted, by id. */
export async function loadHistories(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_ids: readonly string[],
): Promise<Map<string, EventHistory>> {
  const [originals, corrections] = await Promise.all([
    loadOriginals(clickhouse, scope, event_ids),
    loadStoredCorrections(clickhouse, scope, event_ids),
  ]);
  const byEvent = groupBy(corrections, ({ event_id }) => event_id);
  return new Map(
    [...originals].map(([event_id, original]) => [event_id, { original, corrections: byEvent.get(event_id) ?? [] }]),
  );
}

/** Events as they were accepted, without later corrections. */
async function loadOriginals(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_ids: readonly string[],
): Promise<Map<string, StoredEventVersion>> {
  const rows = await loadAcceptedEvents<StoredContentRow>(clickhouse, {
    scope,
    event_ids,
    buildQuery: (where) => `
      select event_id, ${CONTENT}, partition as event_partition, toString(offset) as event_offset_text, position as event_position
        from events
       where ${where}
       order by event_id, event_partition, offset, event_position limit 1 by event_id`,
  });
  return new Map(rows.map((row) => [row.event_id, toStoredContent(row)]));
}

/** Loads the corrections, oldest first. Several rows with one number come from several attempts; they differ only after a fault. */
async function loadStoredCorrections(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_ids: readonly string[],
): Promise<(StoredEventCorrection & { readonly event_id: string })[]> {
  const rows = await loadRows<CorrectionContentRow>(clickhouse, 'corrections', {
    query: `
      select event_id, ${CONTENT}, event_partition, toString(event_offset) as event_offset_text, event_position,
             action, toString(sequence) as nth, partition, toString(offset) as log_offset,
             toString(${FINGERPRINT}) as fingerprint
        from event_corrections where ${WITH_IDS} order by event_id, sequence`,
    params: toIdParams(scope, event_ids),
  });
  return rows.map((row) => ({
    ...toStoredContent(row),
    event_id: row.event_id,
    action: row.action,
    sequence: BigInt(row.nth),
    log_position: { partition: row.partition, offset: Number(row.log_offset) },
    fingerprint: row.fingerprint,
  }));
}

/** Loads the event as it was accepted, without later corrections. */
export async function loadAcceptedEvent(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_id: string,
): Promise<StoredEventVersion | undefined> {
  return (await loadOriginals(clickhouse, scope, [event_id])).get(event_id);
}

/** Loads the last stored correction of an event. */
export async function loadLastCorrection(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_id: string,
): Promise<(StoredEventVersion & { readonly action: string }) | undefined> {
  return (await loadStoredCorrections(clickhouse, scope, [event_id])).at(-1);
}

type CorrectedSubject = Pick<EventContent, 'external_customer_id' | 'event_name' | 'timestamp_us'>;

/**
 * Loads name, customer and time of each event after its correction, by the id of the correction. A correction that has not taken effect is
 * absent.
 */
export async function loadCorrectedSubjects(
  clickhouse: ClickHouseClient,
  scope: Scope,
  corrections: readonly { readonly id: string; readonly event_id: string }[],
): Promise<Map<string, CorrectedSubject>> {
  if (corrections.length === 0) return new Map();
  const rows = await loadRows<{ id: string; external_customer_id: string; event_name: string; at_us: string }>(
    clickhouse,
    'corrected events',
    {
      query: `select toString(sequence) as id, external_customer_id, event_name,
                     toString(toUnixTimestamp64Micro(timestamp)) as at_us
                from event_corrections where ${WITH_IDS} and sequence in {sequences:Array(UInt64)} limit 1 by sequence`,
      params: {
        ...toIdParams(scope, [...new Set(corrections.map(({ event_id }) => event_id))]),
        sequences: corrections.map(({ id }) => BigInt(id)),
      },
    },
  );
  return new Map(rows.map(({ id, at_us, ...subject }) => [id, { ...subject, timestamp_us: Number(at_us) }]));
}

/** Greatest number of corrections that a filter by name or customer finds; it finds the newest. */
export const FILTERED_CORRECTIONS_MAX = 10_000;

/** Lists the ids of the corrections that took effect and whose event then had this name and customer, newest first. */
export async function listCorrectionIds(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  { event_name, external_customer_id }: { event_name: string | null; external_customer_id: string | null },
): Promise<string[]> {
  const conditions = ['tenant_id = {tenant_id:String} and environment_id = {environment_id:String}'];
  if (event_name !== null) conditions.push('event_name = {event_name:String}');
  if (external_customer_id !== null) conditions.push('external_customer_id = {external_customer_id:String}');
  const rows = await loadRows<{ id: string }>(clickhouse, 'corrections of a filter', {
    query: `select distinct toString(sequence) as id from event_corrections where ${conditions.join(' and ')}
             order by sequence desc limit ${FILTERED_CORRECTIONS_MAX}`,
    params: {
      ...{ tenant_id, environment_id },
      event_name: event_name ?? '',
      external_customer_id: external_customer_id ?? '',
    },
  });
  return rows.map(({ id }) => id);
}

export async function writeCorrections(
  clickhouse: ClickHouseClient,
  rows: readonly AppliedCorrection[],
  attempt: WriteAttempt,
): Promise<void> {
  await writeRows(clickhouse, EVENT_CORRECTIONS, { rows, attempt });
}

/** Differences to repair, so that the table contains exactly these corrections. */
type CorrectionDifferences = {
  /** Corrections without an equal row. */
  readonly missing: readonly AppliedCorrection[];
  /** Stored rows that have the number of a given correction but other content. */
  readonly wrong: readonly (Scope & StoredEventCorrection & { readonly event_id: string })[];
};

export async function compareCorrections(
  clickhouse: ClickHouseClient,
  rows: readonly AppliedCorrection[],
): Promise<CorrectionDifferences> {
  const missing: AppliedCorrection[] = [];
  const wrong: (Scope & StoredEventCorrection & { event_id: string })[] = [];
  for (const some of groupBy(rows, scopeKey).values()) {
    const { tenant_id, environment_id } = some[0];
    const event_ids = [...new Set(some.map(({ event_id }) => event_id))];
    const stored = await loadStoredCorrections(clickhouse, { tenant_id, environment_id }, event_ids);
    const byNumber = groupBy(stored, ({ event_id, sequence }) => JSON.stringify([event_id, String(sequence)]));
    for (const row of some) {
      const known = byNumber.get(JSON.stringify([row.event_id, row.sequence])) ?? [];
      const { partition, offset } = row;
      const expected = correctionText({ ...row, log_position: { partition, offset } });
      const others = known.filter((correction) => correctionText(correction) !== expected);
      if (others.length === known.length) missing.push(row);
      for (const other of others) wrong.push({ ...other, tenant_id, environment_id });
    }
  }
  return { missing, wrong };
}

/** Text by which two corrections with one number are compared. */
function correctionText(
  correction: StoredEventVersion & { readonly action: string; readonly log_position: CorrectionPosition },
): string {
  const { action, log_position, external_customer_id, event_name, timestamp_us, customer_id, source, properties } =
    correction;
  const { received_at_us, event_partition, event_offset, event_position } = correction;
  const content = [external_customer_id, event_name, timestamp_us, customer_id, source, properties, received_at_us];
  return JSON.stringify([
    action,
    log_position.partition,
    log_position.offset,
    event_partition,
    event_offset,
    event_position,
    content,
  ]);
}

/** Deletes rows with wrong content. The caller writes the right ones first, so that a reader always finds one. */
export async function deleteWrongCorrections(
  clickhouse: ClickHouseClient,
  wrong: CorrectionDifferences['wrong'],
): Promise<void> {
  const conditions = wrong.map(
    ({ tenant_id, environment_id, event_id, sequence, fingerprint }) =>
      `(tenant_id = ${quoteText(tenant_id)} and environment_id = ${quoteText(environment_id)} and event_id = ${quoteText(event_id)}
        and sequence = ${sequence} and ${FINGERPRINT} = ${fingerprint})`,
  );
  await deleteWhere(clickhouse, { table: 'event_corrections', conditions });
}

const EVENT_CORRECTIONS: RowTarget<AppliedCorrection> = {
  table: 'event_corrections',
  columns: [
    labelColumn('tenant_id', (row) => row.tenant_id),
    labelColumn('environment_id', (row) => row.environment_id),
    textColumn('event_id', (row) => row.event_id),
    uint64Column('sequence', (row) => Number(row.sequence)),
    labelColumn('action', (row) => row.action),
    uint16Column('partition', (row) => row.partition),
    uint64Column('offset', (row) => row.offset),
    textColumn('external_customer_id', (row) => row.external_customer_id),
    labelColumn('event_name', (row) => row.event_name),
    instantColumn('timestamp', 6, (row) => row.timestamp_us),
    textColumn('customer_id', (row) => row.customer_id),
    labelColumn('source', (row) => row.source),
    textColumn('properties', (row) => row.properties),
    instantColumn('received_at', 6, (row) => row.received_at_us),
    uint16Column('event_partition', (row) => row.event_partition),
    uint64Column('event_offset', (row) => row.event_offset),
    uint32Column('event_position', (row) => row.event_position),
  ],
};

const CONTENT = `external_customer_id, event_name, customer_id, source, properties,
  toString(toUnixTimestamp64Micro(timestamp)) as at_us, toString(toUnixTimestamp64Micro(received_at)) as got_us`;
const FINGERPRINT = `sipHash64(action, partition, offset, external_customer_id, event_name, timestamp, customer_id, source,
  properties, received_at, event_partition, event_offset, event_position)`;

type StoredContentRow = Omit<EventContent, 'timestamp_us'> & {
  event_id: string;
  at_us: string;
  got_us: string;
  event_partition: number;
  event_offset_text: string;
  event_position: number;
};

type CorrectionContentRow = StoredContentRow & {
  action: string;
  nth: string;
  partition: number;
  log_offset: string;
  fingerprint: string;
};

function toStoredContent(row: StoredContentRow): StoredEventVersion {
  const { external_customer_id, event_name, customer_id, source, properties, event_partition, event_position } = row;
  return {
    external_customer_id,
    event_name,
    timestamp_us: Number(row.at_us),
    customer_id,
    source,
    properties,
    received_at_us: Number(row.got_us),
    event_partition,
    event_offset: Number(row.event_offset_text),
    event_position,
  };
}
