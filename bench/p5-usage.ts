/**
 * P5: usage of one customer-month, read by the service (buckets, and the progress reads that make it exact while data arrive), compared
 * with the common alternative: a ReplacingMergeTree read with FINAL. Both are loaded by the same 40 inserts, and their answers must agree.
 * The cost of FINAL depends on the parts that it merges during the read. So both are measured in three states: the parts as inserted
 * (merges are stopped, as they lag under load), merged by the engine, and merged to one part. The target concerns the first state, which is
 * that of a month being billed while events arrive. Growth is measured from a tenth of the events to all of them. The target applies to
 * `--usage-events=20000000`, which takes some minutes.
 */
import { type Service, startService } from './processes.ts';
import { check, claim, fixed, flag, median, say } from './report.ts';

const MUST_RATIO = 1 / 5;
const MUST_GROWTH = 1.3;
const NAMES = 20;
const CUSTOMERS = 5_000;
const CUSTOMERS_ASKED = [2, 60, 600];
const MONTH = { start_us: Date.UTC(2026, 8, 1) * 1000, end_us: Date.UTC(2026, 9, 1) * 1000 };
const DAYS = 30;
const INSERTS = 40;
const TABLES = ['bench_raw', 'usage_buckets'];

export async function run(): Promise<void> {
  const events = flag('usage-events', 8_000_000);
  const times = flag('times', 15);
  const service = await startService('unscheduled');
  try {
    const meter_id = await makeMeter(service);
    const tenth = Math.floor(events / 10);
    const chunk = Math.ceil(events / INSERTS);
    await load(service, { meter_id, from: 0, to: tenth, chunk });
    await service.waitUntilMerged();
    const few = await ask(service, { meter_id, times });
    await eachTable(service, (table) => `system stop merges ${table}`);
    await load(service, { meter_id, from: tenth, to: events, chunk });
    const inserted = await ask(service, { meter_id, times });
    await eachTable(service, (table) => `system start merges ${table}`);
    await service.waitUntilMerged();
    const merged = await ask(service, { meter_id, times });
    await eachTable(service, (table) => `optimize table ${table} final`);
    const whole = await ask(service, { meter_id, times });
    report(events, { few, inserted, merged, whole });
  } finally {
    await service.stop();
  }
}

async function eachTable(service: Service, statement: (table: string) => string): Promise<void> {
  for (const table of TABLES) await service.call({ what: 'command', sql: statement(table) });
}

/** Milliseconds by customer, and the number of parts of both tables. */
type Asked = { ours: number[]; raw: number[]; parts: string };
type States = Record<'few' | 'inserted' | 'merged' | 'whole', Asked>;

function report(events: number, { few, inserted, merged, whole }: States): void {
  say(`  ${fixed(events / 1e6, 0)} M events; ms from buckets / from raw events with FINAL, medians:`);
  for (const [name, asked] of Object.entries({ 'a tenth of them': few, 'as inserted': inserted, merged, whole })) {
    const each = CUSTOMERS_ASKED.map((customer, at) => {
      return `customer ${customer}: ${fixed(asked.ours[at]!)} / ${fixed(asked.raw[at]!)}`;
    });
    say(`  ${name.padEnd(16)} ${each.join(';  ')}  (${asked.parts})`);
  }
  const ratioOf = (asked: Asked) => median(asked.ours.map((one, at) => one / asked.raw[at]!));
  const ratio = ratioOf(inserted);
  claim('P5 buckets against raw with FINAL, as inserted', `1/${fixed(1 / ratio)}`, '1/5', ratio <= MUST_RATIO);
  const idle = [merged, whole].map((asked) => `1/${fixed(1 / ratioOf(asked))}`);
  say(`  where all is merged and FINAL has nothing to do: ${idle.join(', in one part ')}`);
  const growth = median(merged.ours.map((one, at) => one / few.ours[at]!));
  claim('P5 growth to ten times the events', `${fixed(growth, 2)} times`, `${MUST_GROWTH}`, growth <= MUST_GROWTH);
}

/** Creates a SUM meter by the API and waits until it is live; creates the raw table. */
async function makeMeter(service: Service): Promise<string> {
  const aggregation = { type: 'SUM', field: 'tokens' };
  const { id } = await service.post<{ id: string }>('/meters', { name: 'tokens', event_name: 'api.0', aggregation });
  const open = `select count(*)::int as n from meter_versions where state <> 'live'`;
  while ((await service.call<{ n: number }[]>({ what: 'postgres', sql: open }))[0]!.n > 0);
  // Marks the days of the loaded rows as over, so that daily rollups are read for them.
  await service.call({ what: 'postgres', sql: `update slices set days_before = ${MONTH.end_us / 86_400_000_000}` });
  const like = 'select * from events limit 0';
  await service.call({
    what: 'command',
    sql: `create table bench_raw engine = ReplacingMergeTree(received_at) partition by toYYYYMM(timestamp)
            order by (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id) as ${like}`,
  });
  return id;
}

/**
 * Fills the raw table with events of log-uniform customers, 20 names and a month, and derives the bucket rows from it. Each insert is one
 * block of events and one of bucket rows of both sizes, as a slice of the log writes them.
 */
async function load(
  service: Service,
  { meter_id, from, to, chunk }: { meter_id: string; from: number; to: number; chunk: number },
): Promise<void> {
  const { tenant_id, environment_id } = await scopeOf(service, meter_id);
  for (let start = from; start < to; start += chunk) {
    const count = Math.min(chunk, to - start);
    await service.call({
      what: 'command',
      sql: `insert into bench_raw select '${tenant_id}', '${environment_id}', concat('customer_', toString(toUInt32(pow(${CUSTOMERS}, (cityHash64(number) % 1000003) / 1000003)) - 1)),
              concat('api.', toString(cityHash64(number, 1) % ${NAMES})),
              toDateTime64('2026-09-01 00:00:00', 6, 'UTC') + toIntervalSecond(cityHash64(number, 2) % ${DAYS * 86_400}),
              concat('evt_', hex(number)), '', 'gateway',
              concat('{"model":"medium","region":"eu-west-1","tokens":', toString(cityHash64(number, 3) % 4000), ',"duration_ms":12.5,"status":"ok","host":"host-1"}'),
              now64(6), 0, 0, toUInt32(number)
              from numbers(${start}, ${count})
            settings max_insert_block_size = ${count}, min_insert_block_size_rows = ${count}, min_insert_block_size_bytes = 0`,
    });
    await service.call({
      what: 'command',
      sql: `insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key, event_count, sum)
              select tenant_id, environment_id, if(event_name = 'api.0', '${meter_id}', concat('other_', event_name)), 1, cut.1, external_customer_id,
                     cut.2, '', count(), sum(toDecimal256(JSONExtractInt(properties, 'tokens'), 24))
                from (select *, arrayJoin([('HOUR', toDateTime64(toStartOfHour(timestamp), 0, 'UTC')), ('DAY', toDateTime64(toStartOfDay(timestamp), 0, 'UTC'))]) as cut
                        from bench_raw where position >= ${start} and position < ${start + count})
               group by tenant_id, environment_id, event_name, external_customer_id, cut
            settings min_insert_block_size_rows = ${2 * count}, min_insert_block_size_bytes = 0`,
    });
  }
}

type Scope = { tenant_id: string; environment_id: string };

async function scopeOf(service: Service, meter_id: string): Promise<Scope> {
  const sql = `select tenant_id, environment_id from meters where id = '${meter_id}'`;
  const [scope] = await service.call<Scope[]>({ what: 'postgres', sql });
  return scope!;
}

async function ask(service: Service, { meter_id, times }: { meter_id: string; times: number }): Promise<Asked> {
  const asked: Asked = { ours: [], raw: [], parts: await partsOf(service) };
  const scope = await scopeOf(service, meter_id);
  for (const number of CUSTOMERS_ASKED) {
    const customer = `customer_${number}`;
    const question = { what: 'usage', meter_id, customer, ...MONTH, times };
    const ours = await service.call<{ value: string; from: string; took: number[] }>(question);
    const raw = await service.call<{ value: string; took: number[] }>({
      what: 'timed',
      times,
      sql: rawSum(customer, scope),
    });
    check(ours.from === 'buckets', `usage was answered from ${ours.from}`);
    check(
      ours.value === raw.value && (ours.value !== '0' || number > 60),
      `buckets say ${ours.value}, raw events ${raw.value}`,
    );
    asked.ours.push(median(ours.took));
    asked.raw.push(median(raw.took));
  }
  return asked;
}

async function partsOf(service: Service): Promise<string> {
  const sql = `select table, count() as n from system.parts where active and table in ('${TABLES.join("', '")}') group by table`;
  const rows = await service.call<{ table: string; n: string }[]>({ what: 'sql', sql });
  return rows.map(({ table, n }) => `${table} in ${n} parts`).join(', ');
}

function rawSum(customer: string, { tenant_id, environment_id }: Scope): string {
  return `select toString(sum(toDecimal128(JSONExtractRaw(properties, 'tokens'), 12))) as value from bench_raw final
           where tenant_id = '${tenant_id}' and environment_id = '${environment_id}' and external_customer_id = '${customer}' and event_name = 'api.0'
             and timestamp >= toDateTime64('2026-09-01 00:00:00', 6, 'UTC') and timestamp < toDateTime64('2026-10-01 00:00:00', 6, 'UTC')`;
}
