/**
 * An installation with every kind of record that an audit compares: events of several partitions and months,
 * duplicates, conflicts, dead letters, a rejected event, corrections, and meters announced before and after the events.
 * Tests can damage and restore it.
 */

import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { CHECKS, type CheckName, type Finding } from '../../actions/operations/audit/findings.ts';
import type { IdentityFiles } from '../../actions/operations/audit/identity-files.ts';
import { auditRecords } from '../../actions/operations/audit/records.ts';
import { type Metering, SCOPE, startMetering } from './metering.ts';

const TABLES = ['events', 'event_identities', 'event_outcomes', 'event_corrections', 'usage_buckets'] as const;
const POSTGRES_TABLES = ['slice_ledger', 'event_corrections'] as const;

export type Recorded = {
  readonly metering: Metering;
  /**
   * Calls `ask` repeatedly while events arrive, some of them duplicates or corrections, and once more after all have
   * had their effect.
   */
  flooded(name: string, ask: () => Promise<unknown>): Promise<void>;
  audit(checks?: readonly CheckName[], files?: readonly IdentityFiles[]): Promise<Finding[]>;
  /** Runs a statement in ClickHouse; its effect is visible when this resolves. */
  clickhouse(query: string): Promise<void>;
  postgres(query: string): Promise<void>;
  /** Damages the records, calls `ask`, restores the records, and returns the result of `ask`. */
  damaged<T>(damage: () => Promise<void>, ask: () => Promise<T>): Promise<T>;
};

export async function startRecorded(): Promise<Recorded> {
  const metering = await startMetering();
  const { stores } = metering;
  const clickhouse = async (query: string) => {
    await stores.clickhouse.command({
      query,
      clickhouse_settings: { mutations_sync: '2', lightweight_deletes_sync: '2', insert_deduplicate: 0 },
    });
  };
  const postgres = async (query: string) => void (await stores.postgres.raw(query));
  await metering.announce('m_sum', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
  await metering.waitForPipeline();
  await fill(metering, clickhouse);
  await metering.announce('m_late', { event_name: 'call', filters: [], aggregation: { type: 'MAX', field: 'n' } });
  await metering.waitForPipeline();
  // An audit reads every part, and each part costs a millisecond.
  for (const table of TABLES)
    await clickhouse(`optimize table ${table} final settings optimize_skip_merged_partitions = 1`);
  const copies = copyTables(metering, clickhouse);
  return {
    metering,
    clickhouse,
    postgres,
    flooded: async (name, ask) => {
      let isOver = false;
      const asking = async () => {
        while (!isOver) await ask();
      };
      const arriving = flood(metering, name).finally(() => (isOver = true));
      await Promise.all([arriving, asking()]);
      await ask();
    },
    audit: async (checks = CHECKS, files = []) => {
      const found: Finding[] = [];
      const asked = {
        checks: new Set(checks),
        log: 'embedded' as const,
        identityFiles: async () => files,
        chance: () => 0.5,
      };
      await auditRecords(stores, asked, (finding) => found.push(finding));
      return found;
    },
    damaged: async (damage, ask) => {
      await copies.update();
      await postgres(POSTGRES_TABLES.map((table) => `create table whole_${table} as table ${table}`).join(';'));
      try {
        await damage();
        return await ask();
      } finally {
        await copies.restore();
        await postgres(POSTGRES_TABLES.map(restorePostgres).join(';'));
      }
    },
  };
}

/**
 * Copies the tables. A write changes the parts of a table, so a table with equal parts is neither copied nor restored.
 */
function copyTables({ rows }: Metering, clickhouse: (query: string) => Promise<void>) {
  const copied = new Map<string, string>();
  const listChanged = async () => {
    const parts = await rows<{ table: string; names: string }>(
      `select table, toString(arraySort(groupArray(name))) as names from system.parts
       where database = currentDatabase() and active group by table`,
    );
    const names = new Map(parts.map(({ table, names }) => [table, names]));
    return TABLES.map((table) => ({ table, names: names.get(table) ?? '' })).filter(
      ({ table, names }) => copied.get(table) !== names,
    );
  };
  const remember = async () => {
    for (const { table, names } of await listChanged()) copied.set(table, names);
  };
  return {
    update: async () => {
      for (const { table, names } of await listChanged()) {
        await clickhouse(`create or replace table whole_${table} as ${table} engine = Memory`);
        await clickhouse(`insert into whole_${table} select * from ${table}`);
        copied.set(table, names);
      }
    },
    restore: async () => {
      for (const { table } of await listChanged()) {
        await clickhouse(`truncate table ${table}`);
        await clickhouse(`insert into ${table} select * from whole_${table}`);
      }
      await remember();
    },
  };
}

function restorePostgres(table: (typeof POSTGRES_TABLES)[number]): string {
  const columns = table === 'event_corrections' ? 'overriding system value' : '';
  return `delete from ${table}; insert into ${table} ${columns} select * from whole_${table}; drop table whole_${table}`;
}

export function recordedEvent(id: string, n: number, fields: object = {}) {
  return {
    event_id: id,
    event_name: 'call',
    external_customer_id: `c${n % 5}`,
    timestamp: new Date(Date.UTC(2026, n % 2, 1 + (Math.ceil(n / 2) % 2), n % 24, n % 60)).toISOString(),
    properties: { n: String(n) },
    ...fields,
  };
}

const many = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => recordedEvent(`${prefix}${n}`, n));

async function fill(metering: Metering, clickhouse: (query: string) => Promise<void>): Promise<void> {
  await clickhouse(`alter table events add constraint refused check source != 'bad'`);
  await metering.send(many('e', 300));
  await metering.waitForPipeline();
  await metering.send([recordedEvent('poison', 1, { source: 'bad' }), ...many('f', 20)]);
  await metering.send(many('e', 40));
  await metering.send(many('e', 20).map((event) => ({ ...event, properties: { n: '777' } })));
  await metering.send(Array.from({ length: 12 }, (_, n) => ({ event_id: `dead${n}`, external_customer_id: 'c1' })));
  await metering.waitForPipeline();
  await clickhouse(`alter table events drop constraint refused`);
  // ClickHouse rejects the bucket row of this event after its raw row is written. The raw row stays, marked as voided.
  await clickhouse(`alter table usage_buckets add constraint refused check external_customer_id != 'cursed'`);
  await metering.send([recordedEvent('cursed', 1, { external_customer_id: 'cursed' }), ...many('g', 20)]);
  await metering.waitForPipeline();
  await clickhouse(`alter table usage_buckets drop constraint refused`);
  for (const n of [1, 2, 4]) await correct(metering, `e${n}`, n % 2 === 0 ? recordedEvent(`e${n}`, 50) : null);
  await metering.waitForPipeline();
}

async function correct({ stores }: Metering, event_id: string, by: object | null): Promise<void> {
  await requestCorrection(stores, SCOPE, {
    event_id,
    action: by === null ? 'void' : 'replace',
    replacement: by === null ? null : JSON.stringify(by),
    reason: 'test',
    user_id: 'user_1',
    now: new Date(),
  });
}

/** Four of the batches have repeated and corrected events. */
const FLOOD_BATCHES = 10;

/** Each batch makes a slice of every partition. The next batch waits for them, so that they do not pile up on a busy machine. */
async function flood(metering: Metering, name: string): Promise<void> {
  for (let batch = 0; batch < FLOOD_BATCHES; batch++) {
    await metering.send(many(`${name}${batch}-`, 20));
    if (batch % 3 === 0) await metering.send(many(`${name}${batch}-`, 10));
    if (batch % 3 === 0) await correct(metering, `${name}${batch}-3`, null);
    await metering.waitForPipeline();
  }
}
