/** Settings that an operator's profile may have: what is right depends on none that this repository does not set itself. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { requestCorrection } from '../../../actions/metering/events/request-correction.ts';
import { auditUsage } from '../../../actions/operations/audit/usage.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { migrateClickHouse } from '../../../sql/migrate.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { ONE_BLOCK, STATEMENT_SETTINGS } from '../../../storage/clickhouse/settings.ts';
import { startClickHouse } from '../../../storage/embedded/clickhouse/clickhouse.ts';
import type { ChildServer } from '../../../storage/embedded/clickhouse/part.ts';
import { writeBucketRows } from '../../../storage/events/bucket-rows.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const SPRING = ['2026-03-01T00:00:00Z', '2026-06-01T00:00:00Z'] as const;

/** Another value for every setting that a statement of ours names, but for those in CUTTING: the engine refuses both at once. */
const HOSTILE: Readonly<Record<string, string>> = {
  output_format_json_quote_64bit_integers: '0',
  output_format_json_quote_decimals: '0',
  output_format_json_named_tuples_as_objects: '0',
  output_format_json_array_of_rows: '1',
  date_time_output_format: 'iso',
  session_timezone: 'Asia/Tokyo',
  http_write_exception_in_output_format: '1',
  partial_result_on_first_cancel: '1',
  limit: '2',
  offset: '1',
  additional_table_filters: `{'usage_buckets': 'event_count = 0', 'events': '0'}`,
  additional_result_filter: '0',
  use_query_cache: '1',
  apply_deleted_mask: '0',
  apply_patch_parts: '0',
  skip_unavailable_shards: '1',
  enable_parallel_replicas: '1',
  enable_analyzer: '0',
  enable_positional_arguments: '0',
  prefer_column_name_to_alias: '1',
  aggregate_functions_null_for_empty: '1',
  empty_result_for_aggregation_by_empty_set: '1',
  transform_null_in: '1',
  group_by_use_nulls: '1',
  join_use_nulls: '1',
  cast_keep_nullable: '1',
  data_type_default_nullable: '1',
  final: '1',
  decimal_check_overflow: '0',
  short_circuit_function_evaluation: 'disable',
  async_insert: '1',
  lightweight_delete_mode: 'lightweight_update_force',
  lightweight_deletes_sync: '0',
  enable_lightweight_delete: '0',
  mutations_sync: '0',
  alter_sync: '0',
  allow_nondeterministic_mutations: '1',
  mutations_execute_nondeterministic_on_initiator: '1',
  mutations_execute_subqueries_on_initiator: '1',
  distributed_ddl_output_mode: 'never_throw',
  input_format_parallel_parsing: '1',
  max_insert_threads: '4',
  max_threads: '4',
  use_strict_insert_block_limits: '1',
  max_insert_block_size: '10',
  max_insert_block_size_bytes: '1000',
  min_insert_block_size_rows: '1',
  min_insert_block_size_bytes: '1',
  max_block_size: '10',
  max_partitions_per_insert_block: '1',
  optimize_on_insert: '1',
};
const CUTTING: Readonly<Record<string, string>> = {
  read_overflow_mode: 'break',
  read_overflow_mode_leaf: 'break',
  group_by_overflow_mode: 'any',
  sort_overflow_mode: 'break',
  result_overflow_mode: 'break',
  timeout_overflow_mode: 'break',
  timeout_overflow_mode_leaf: 'break',
  set_overflow_mode: 'break',
  join_overflow_mode: 'break',
  transfer_overflow_mode: 'break',
  distinct_overflow_mode: 'break',
};
const WITH_THEM = {
  wait_for_async_insert: '0',
  query_cache_ttl: '600',
  query_cache_min_query_runs: '0',
  query_cache_nondeterministic_function_handling: 'save',
  query_cache_system_table_handling: 'save',
};

describe('a profile that sets everything otherwise', () => {
  let server: Server;
  let metering: Metering;
  before(async () => {
    server = await startWith({ ...HOSTILE, ...WITH_THEM });
    metering = await startMetering({ partitions: 2, database: await databaseOn(server) });
  });
  after(async () => {
    await metering?.stop();
    await server?.stop();
  });

  const events = (from: number, to: number) =>
    Array.from({ length: to - from }, (_none, index) => {
      const i = from + index;
      return {
        event_id: `e${i}`,
        event_name: 'call',
        external_customer_id: `c${i % 3}`,
        timestamp: new Date(Date.UTC(2026, 2 + (i % 3), 10, i % 24)).toISOString(),
        properties: { n: '1', host: `h${i % 7}` },
      };
    });
  const total = async (meter: string) => {
    const values = await Promise.all(['c0', 'c1', 'c2'].map((customer) => metering.usage(meter, customer, SPRING)));
    return values.reduce((sum, value) => sum + Number(value), 0);
  };

  it('has another value for each that we name', () => {
    // How the answer comes is no setting of the server, but of the interface.
    const named = Object.keys({ ...STATEMENT_SETTINGS, ...ONE_BLOCK }).filter((name) => name !== 'wait_end_of_query');
    expect(Object.keys({ ...HOSTILE, ...CUTTING }).sort()).to.deep.equal(named.sort());
  });

  it('is in force', async () => {
    const plain = await fetch(`${server.url}/?query=${encodeURIComponent('select number from numbers(10) where 1')}`, {
      headers: { authorization: server.authorization },
    });
    expect(await plain.text()).to.equal('');
  });

  it('changes nothing: what is sent is counted, once, corrected, back-filled, rolled up and audited', async () => {
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
    await metering.send(events(0, 600));
    await metering.send(events(100, 700));
    await metering.waitForPipeline();
    expect(await total('m')).to.equal(700);
    await metering.announce('u', {
      event_name: 'call',
      filters: [],
      aggregation: { type: 'COUNT_UNIQUE', field: 'host' },
    });
    const asked = {
      event_id: 'e5',
      action: 'void',
      replacement: null,
      reason: 'test',
      user_id: 'u',
      now: new Date(),
    } as const;
    await requestCorrection(metering.stores, SCOPE, asked);
    await metering.waitForPipeline();
    expect(await total('m')).to.equal(699);
    expect(await total('u')).to.equal(21);
    await metering.requestDailyRollups('2026-05-01T00:00:00Z');
    await metering.waitForPipeline();
    expect(await total('m')).to.equal(699);
    const { rows, differences } = await auditUsage(metering.stores, {}, () => {});
    expect({ differences, some: rows > 0 }).to.deep.equal({ differences: 0, some: true });
  });

  it('leaves an insert of one block one part for each month, with its mark', async () => {
    const database = await databaseOn(server);
    const row = (i: number): BucketRow => ({
      tenant_id: 't',
      environment_id: 'e',
      meter_id: 'm',
      external_customer_id: `c${i}`,
      size: 'HOUR',
      bucket_start_us: Date.UTC(2026, 2 + (i % 2), 1) * 1000,
      group_key: '',
      count: 1,
      sum: 0n,
      weighted_sum: 0n,
      first_us: null,
      last_us: null,
      min: null,
      max: null,
      latest: null,
      uniques: [],
    });
    const rows = Array.from({ length: 5_000 }, (_none, i) => row(i));
    await writeBucketRows(database.clickhouse, { rows, getVersion: () => 1 }, { writer: 'w', attempt: 1n });
    const answer = await database.clickhouse.query({
      // Each part that was ever written has taken a number of its month.
      query: `select partition, toString(max(max_block_number) - min(min_block_number) + 1) as parts, toString(sum(rows)) as rows
                from system.parts where active and database = currentDatabase() and table = 'usage_buckets'
               group by partition order by partition`,
      format: 'JSONEachRow',
    });
    expect(await answer.json()).to.deep.equal([
      { partition: '202603', parts: '1', rows: '2501' },
      { partition: '202604', parts: '1', rows: '2501' },
    ]);
    await database.close();
  });
});

describe('a profile that cuts what is too long', () => {
  let server: Server;
  before(async () => {
    server = await startWith({
      ...CUTTING,
      max_result_rows: '100',
      max_rows_to_group_by: '100',
      max_rows_in_set: '100',
      max_block_size: '50',
    });
  });
  after(() => server?.stop());

  for (const [what, query] of [
    ['the rows of an answer', 'select number from numbers(500)'],
    ['groups', 'select count() from (select number, count() from numbers(500) group by number)'],
    ['a list of what is wanted', 'select count() from numbers(10) where number in (select number from numbers(500))'],
  ] as const)
    it(`gets an error instead, of ${what}`, async () => {
      const client = connectClickHouse(server.url_with_user);
      const error = await client
        .query({ query, format: 'JSONEachRow' })
        .then((answer) => answer.json())
        .catch((thrown: Error) => thrown);
      await client.close();
      expect(String(error)).to.match(/limit|exceeded/i);
    });
});

type Server = { url: string; url_with_user: string; authorization: string; stop(): Promise<void> };

/** The engine reads the profile of its user from a file that the product does not write. */
async function startWith(profile: Readonly<Record<string, string>>): Promise<Server> {
  const dir = mkdtempSync(join(tmpdir(), 'farthing-profile-'));
  const users = join(dir, 'users.xml');
  const settings = Object.entries(profile).map(([name, value]) => `<${name}>${value}</${name}>`);
  writeFileSync(
    users,
    `<clickhouse><profiles><default>${settings.join('')}</default></profiles><quotas><default/></quotas>
     <users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users></clickhouse>`,
  );
  mkdirSync(join(dir, 'config.d'));
  writeFileSync(join(dir, 'config.d', 'users.xml'), `<clickhouse><users_config>${users}</users_config></clickhouse>`);
  const part: ChildServer = await startClickHouse({ dir, log: () => {} });
  part.unref();
  const { origin, username, password } = new URL(part.url);
  return {
    url: origin,
    url_with_user: part.url,
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    stop: async () => {
      await part.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

let databases = 0;

async function databaseOn(server: Server): Promise<FreshDatabase> {
  const { postgres, postgres_url, close } = await freshDatabase();
  const root = connectClickHouse(server.url_with_user);
  const name = `hostile_${++databases}`;
  await root.command({ query: `CREATE DATABASE ${name}` });
  await root.close();
  const clickhouse_url = `${server.url_with_user.replace(/\/default$/, '')}/${name}`;
  const clickhouse = connectClickHouse(clickhouse_url);
  await migrateClickHouse(clickhouse);
  return {
    postgres,
    postgres_url,
    clickhouse,
    clickhouse_url,
    close: async () => {
      await clickhouse.close();
      await close();
    },
  };
}
