/**
 * An installation with one of everything that an audit compares: events of several partitions and months, duplicates,
 * conflicts, dead letters, one that the stores refuse, corrections, and meters that came before and after. It can be damaged
 * and made whole again.
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
  /** More events, batch after batch, some of them sent again, and corrections of some. */
  flood(name: string, goesOn: () => boolean): Promise<void>;
  audit(checks?: readonly CheckName[], files?: readonly IdentityFiles[]): Promise<Finding[]>;
  /** A statement to ClickHouse that has had its effect when this resolves. */
  clickhouse(query: string): Promise<void>;
  postgres(query: string): Promise<void>;
  /** Damages it, asks, and takes everything back. */
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
  await fill(metering, clickhouse);
  await metering.announce('m_late', { event_name: 'call', filters: [], aggregation: { type: 'MAX', field: 'n' } });
  await metering.waitForPipeline();
  return {
    metering,
    clickhouse,
    postgres,
    flood: (name, goesOn) => flood(metering, name, goesOn),
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
      for (const table of TABLES) {
        await clickhouse(`create or replace table whole_${table} as ${table} engine = Memory`);
        await clickhouse(`insert into whole_${table} select * from ${table}`);
      }
      for (const table of POSTGRES_TABLES) await postgres(`create table whole_${table} as table ${table}`);
      try {
        await damage();
        return await ask();
      } finally {
        for (const table of TABLES) {
          await clickhouse(`truncate table ${table}`);
          await clickhouse(`insert into ${table} select * from whole_${table}`);
          await clickhouse(`drop table whole_${table}`);
        }
        for (const table of POSTGRES_TABLES) {
          const columns = table === 'event_corrections' ? 'overriding system value' : '';
          await postgres(`delete from ${table}`);
          await postgres(`insert into ${table} ${columns} select * from whole_${table}`);
          await postgres(`drop table whole_${table}`);
        }
      }
    },
  };
}

export function recordedEvent(id: string, n: number, fields: object = {}) {
  return {
    event_id: id,
    event_name: 'call',
    external_customer_id: `c${n % 5}`,
    timestamp: new Date(Date.UTC(2026, n % 4, 1 + (n % 3), n % 24, n % 60)).toISOString(),
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
  // Its raw row is written before its usage row is refused, and stays, voided.
  await clickhouse(`alter table usage_buckets add constraint refused check external_customer_id != 'cursed'`);
  await metering.send([recordedEvent('cursed', 1, { external_customer_id: 'cursed' }), ...many('g', 20)]);
  await metering.waitForPipeline();
  await clickhouse(`alter table usage_buckets drop constraint refused`);
  for (const n of [1, 2, 3, 4]) await correct(metering, `e${n}`, n % 2 === 0 ? recordedEvent(`e${n}`, 50) : null);
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

async function flood(metering: Metering, name: string, goesOn: () => boolean): Promise<void> {
  for (let round = 0; goesOn(); round++) {
    // Slices come and go, and do not pile up on a busy machine.
    if (round % 5 === 4) await metering.waitForPipeline();
    await metering.send(many(`${name}${round}-`, 20));
    if (round % 4 === 0) await metering.send(many(`${name}${round}-`, 10));
    if (round % 5 === 0) await correct(metering, `${name}${round}-3`, null);
  }
}
