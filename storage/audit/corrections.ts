/** Corrections in Postgres and in ClickHouse, page by page in the order of their sequence. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { CorrectionState } from '../../core/metering/correction.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import type { Database } from '../foundation/stores.ts';
import { IN_EFFECT } from './events-as-sent.ts';

export type CorrectionRow = Scope & { readonly id: string; readonly event_id: string; readonly action: string };
export type RequestedCorrection = CorrectionRow & {
  readonly state: CorrectionState;
  /** Log position at which the pipeline processed the correction; null if an earlier version did not record it. */
  readonly log_partition: number | null;
  readonly log_offset: string | null;
};
export type AuditedStoredCorrection = CorrectionRow & {
  /** Position of the correction in the log. */
  readonly partition: number;
  readonly offset: string;
  /** Position of its event in the log. */
  readonly event_partition: number;
  readonly event_offset: string;
  readonly event_position: number;
  readonly external_customer_id: string;
  readonly event_name: string;
  readonly customer_id: string;
  readonly source: string;
  /** Microseconds, as text. */
  readonly at_us: string;
  readonly properties: string;
};

type CorrectionPage = { readonly after: bigint; readonly limit: number };

/** Corrections of all tenants in any state, in order. */
export async function listRequestedCorrections(
  database: Database,
  { after, limit }: CorrectionPage,
): Promise<RequestedCorrection[]> {
  const { rows } = await database.raw(
    `select id, tenant_id, environment_id, event_id, action, state, log_partition, log_offset from event_corrections
      where id > ? order by id limit ?`,
    [String(after), limit],
  );
  return rows;
}

/** Loads the current states of corrections. A correction that is in effect and is being applied again counts as applied. */
export async function loadCorrectionStates(
  database: Database,
  ids: readonly string[],
): Promise<Map<string, RequestedCorrection['state']>> {
  const { rows } = await database.raw(
    `select id, case when ${IN_EFFECT} then 'applied' else state end as state from event_corrections where id = any(?)`,
    [[...ids]],
  );
  return new Map(rows.map((row: Pick<RequestedCorrection, 'id' | 'state'>) => [row.id, row.state]));
}

/** Finds the sequence number just before the newest `count` corrections. */
export async function findSequenceBeforeNewest(database: Database, count: number): Promise<bigint> {
  const { rows } = await database.raw(
    `select coalesce(min(id) - 1, 0) as after from (select id from event_corrections order by id desc limit ?) as newest`,
    [count],
  );
  return BigInt(rows[0].after);
}

/** Lists the stored corrections in `(after, until]`. Equal rows are listed once, as readers see them. */
export async function listStoredCorrections(
  clickhouse: ClickHouseClient,
  { after, until, limit }: CorrectionPage & { until: bigint },
): Promise<AuditedStoredCorrection[]> {
  return loadRows<AuditedStoredCorrection>(clickhouse, 'corrections by number', {
    query: `select distinct toString(sequence) as id, tenant_id, environment_id, event_id, action, partition,
                   toString(offset) as offset, event_partition, toString(event_offset) as event_offset, event_position,
                   external_customer_id, event_name, customer_id, source, toString(toUnixTimestamp64Micro(timestamp)) as at_us, properties
              from event_corrections where sequence > {after:UInt64} and sequence <= {until:UInt64}
             order by sequence limit ${limit}`,
    params: { after, until },
  });
}
