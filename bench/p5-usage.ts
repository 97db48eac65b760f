/**
 * P5: one customer-month, asked through the one door to usage (buckets, with the reads of progress that make it exact while
 * data arrive), against what peers do: a ReplacingMergeTree read with FINAL. At a tenth of the events and at all of them,
 * with the raw parts merged to one and as inserts leave them. Both are loaded by INSERT … SELECT; the answers must agree. The claim is made for `--usage-events=20000000`, which takes some minutes.
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

export async function run(): Promise<void> {
  const events = flag('usage-events', 8_000_000);
  const times = flag('times', 15);
  const service = await startService('unscheduled');
  try {
    const meter_id = await makeMeter(service);
    const tenth = Math.floor(events / 10);
    await load(service, { meter_id, from: 0, to: tenth });
    const few = await ask(service, { meter_id, times });
    await load(service, { meter_id, from: tenth, to: events });
    const unmerged = await ask(service, { meter_id, times });
    await service.ask({ what: 'command', sql: 'optimize table bench_raw final' });
    const merged = await ask(service, { meter_id, times });
    report({ events, few, unmerged, merged });
  } finally {
    await service.stop();
  }
}

type Asked = { ours: number[]; raw: number[] };

function report({
  events,
  few,
  unmerged,
  merged,
}: {
  events: number;
  few: Asked;
  unmerged: Asked;
  merged: Asked;
}): void {
  const ours = merged.ours.map((one, at) => median([one, unmerged.ours[at]!]));
  for (const [at, customer] of CUSTOMERS_ASKED.entries()) {
    say(
      `  customer ${customer}: buckets ${fixed(ours[at]!)} ms; raw with FINAL ${fixed(merged.raw[at]!)} ms merged, ` +
        `${fixed(unmerged.raw[at]!)} ms as inserted; buckets at a tenth of the events ${fixed(few.ours[at]!)} ms`,
    );
  }
  const ratio = (raw: Asked) => median(raw.ours.map((one, at) => one / raw.raw[at]!));
  const growth = median(unmerged.ours.map((one, at) => one / few.ours[at]!));
  const millions = `${fixed(events / 1e6, 0)} M events`;
  const asInserted = `1/${fixed(1 / ratio(unmerged))} as inserted, 1/${fixed(1 / ratio(merged))} merged, ${millions}`;
  claim('P5 buckets against raw with FINAL', asInserted, '1/5', ratio(unmerged) <= MUST_RATIO);
  claim('P5 growth to ten times the events', `${fixed(growth, 2)} times`, `${MUST_GROWTH}`, growth <= MUST_GROWTH);
}

/** A live SUM meter by the public interface; everything loaded stands before offset 1 of partition 0. */
async function makeMeter(service: Service): Promise<string> {
  const aggregation = { type: 'SUM', field: 'tokens' };
  const { id } = await service.post<{ id: string }>('/meters', { name: 'tokens', event_name: 'api.0', aggregation });
  const open = `select count(*)::int as n from meter_versions where state <> 'live'`;
  while ((await service.ask<{ n: number }[]>({ what: 'postgres', sql: open }))[0]!.n > 0);
  const like = 'select * from events limit 0';
  await service.ask({
    what: 'command',
    sql: `create table bench_raw engine = ReplacingMergeTree(received_at) partition by toYYYYMM(timestamp)
            order by (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id) as ${like}`,
  });
  return id;
}

const CHUNK = 1_000_000;

/** Log-uniform customers, 20 names, a month of time: the same arithmetic for the raw table, then the buckets from it. */
async function load(
  service: Service,
  { meter_id, from, to }: { meter_id: string; from: number; to: number },
): Promise<void> {
  const { tenant_id, environment_id } = await scopeOf(service, meter_id);
  for (let start = from; start < to; start += CHUNK) {
    const count = Math.min(CHUNK, to - start);
    await service.ask({
      what: 'command',
      sql: `insert into bench_raw select '${tenant_id}', '${environment_id}', concat('customer_', toString(toUInt32(pow(${CUSTOMERS}, (cityHash64(number) % 1000003) / 1000003)) - 1)),
              concat('api.', toString(cityHash64(number, 1) % ${NAMES})),
              toDateTime64('2026-09-01 00:00:00', 6, 'UTC') + toIntervalSecond(cityHash64(number, 2) % ${DAYS * 86_400}),
              concat('evt_', hex(number)), '', 'gateway',
              concat('{"model":"medium","region":"eu-west-1","tokens":', toString(cityHash64(number, 3) % 4000), ',"duration_ms":12.5,"status":"ok","host":"host-1"}'),
              now64(6), 0, 0, toUInt32(number)
              from numbers(${start}, ${count})`,
    });
    for (const [size, cut] of [
      ['HOUR', 'toStartOfHour'],
      ['DAY', 'toStartOfDay'],
    ] as const) {
      await service.ask({
        what: 'command',
        sql: `insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key, event_count, sum)
                select tenant_id, environment_id, if(event_name = 'api.0', '${meter_id}', concat('other_', event_name)), 1, '${size}', external_customer_id,
                       ${cut}(timestamp) as bucket, '', count(), sum(toDecimal256(JSONExtractInt(properties, 'tokens'), 24))
                  from bench_raw where position >= ${start} and position < ${start + count}
                 group by tenant_id, environment_id, event_name, external_customer_id, bucket`,
      });
    }
  }
  await service.settled();
}

type Scope = { tenant_id: string; environment_id: string };

async function scopeOf(service: Service, meter_id: string): Promise<Scope> {
  const sql = `select tenant_id, environment_id from meters where id = '${meter_id}'`;
  const [scope] = await service.ask<Scope[]>({ what: 'postgres', sql });
  return scope!;
}

async function ask(service: Service, { meter_id, times }: { meter_id: string; times: number }): Promise<Asked> {
  const asked: Asked = { ours: [], raw: [] };
  const scope = await scopeOf(service, meter_id);
  for (const number of CUSTOMERS_ASKED) {
    const customer = `customer_${number}`;
    const question = { what: 'usage', meter_id, customer, ...MONTH, times };
    const ours = await service.ask<{ value: string; from: string; took: number[] }>(question);
    const raw = await service.ask<{ value: string; took: number[] }>({
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

function rawSum(customer: string, { tenant_id, environment_id }: Scope): string {
  return `select toString(sum(toDecimal128(JSONExtractRaw(properties, 'tokens'), 12))) as value from bench_raw final
           where tenant_id = '${tenant_id}' and environment_id = '${environment_id}' and external_customer_id = '${customer}' and event_name = 'api.0'
             and timestamp >= toDateTime64('2026-09-01 00:00:00', 6, 'UTC') and timestamp < toDateTime64('2026-10-01 00:00:00', 6, 'UTC')`;
}
