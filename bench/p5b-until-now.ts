/**
 * P5b: the most frequent query over HTTP: usage of a customer and meter from the start of the month until now. It covers a million events,
 * most of them in the current hour, while more arrive. The limit for comparison is the same query until the last full hour. The naive way
 * reads the raw events of the current hour. `--seconds` is the time for which events arrive; on a slow machine the queries need more.
 */
import { HOUR_MS } from '../core/foundation/time/durations.ts';
import { makeMeters, type Service, startGenerator, startService } from './processes.ts';
import { check, claim, fixed, flag, quantile, say } from './report.ts';
import { meterDefinitions } from './workload.ts';

const MUST_P50_MS = 8;
const MUST_P99_MS = 30;
const ARRIVING = 2_000;
/** Maximum time by which the timestamp of an event is later than its position in the workload. */
const JITTER_MS = 60_000;
const CUSTOMERS = ['customer_0', 'customer_2', 'customer_60', 'customer_600'];
const WAYS = ['until now', 'full hour', 'raw hour'] as const;

type Way = (typeof WAYS)[number];

export async function run(): Promise<void> {
  const events = flag('events', 1_000_000);
  const rounds = flag('rounds', 150);
  const service = await startService();
  const generator = await startGenerator();
  try {
    const meter_ids = await makeMeters(service);
    const plain = meterDefinitions().findIndex(
      ({ aggregation, filters }) => aggregation.type === 'SUM' && filters.length === 0,
    );
    const meter = { meter_id: meter_ids[plain]!, ...meterDefinitions()[plain]! };
    const common = { url: service.url, api_key: service.api_key, size: 500 };
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const span_ms = Math.max(Date.now() - JITTER_MS - hour, JITTER_MS);
    const load = {
      ...common,
      connections: 4,
      seed: 1,
      total: events,
      workload: { from_ms: Date.now() - JITTER_MS - span_ms, span_ms },
    };
    await (await generator.prepare(load))();
    await service.waitUntilMerged();
    // Queries run while events are sent; a round takes about a fifth of a second.
    const seconds = flag('seconds', Math.ceil(rounds / 3));
    const from_ms = Date.now() - JITTER_MS;
    const arriving = { ...common, connections: 2, seed: 2, total: ARRIVING * seconds, rate: ARRIVING };
    const go = await generator.prepare({ ...arriving, workload: { from_ms, span_ms: seconds * 1000 } });
    let isOver = false;
    const sending = go().then(() => (isOver = true));
    const took = await askAll(service, { meter, rounds });
    check(!isOver, 'the questions took longer than events arrived');
    report(took);
    await sending;
  } finally {
    generator.stop();
    await service.stop();
  }
}

type Asked = {
  meter: { meter_id: string; event_name: string; aggregation: { type: string; field?: string | null } };
  rounds: number;
};

async function askAll(service: Service, { meter, rounds }: Asked): Promise<Record<Way, number[]>> {
  const took: Record<Way, number[]> = { 'until now': [], 'full hour': [], 'raw hour': [] };
  for (let round = 0; round < rounds; round++)
    for (const way of WAYS) {
      const external_customer_id = CUSTOMERS[round % CUSTOMERS.length];
      const began = performance.now();
      await service.post(...questionOf(way, meter, external_customer_id!));
      // The first tenth of the rounds is the warm-up.
      if (round >= rounds / 10) took[way].push(performance.now() - began);
    }
  return took;
}

function questionOf(way: Way, meter: Asked['meter'], external_customer_id: string): [path: string, body: object] {
  const now = Date.now();
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const text = (at: number) => new Date(at).toISOString();
  const start_time = text(now - 20 * 24 * HOUR_MS - (now % HOUR_MS));
  const of = { external_customer_id, start_time };
  if (way === 'until now') return ['/events/usage/meter', { ...of, meter_id: meter.meter_id, end_time: text(now) }];
  if (way === 'full hour')
    return ['/events/usage/meter', { ...of, meter_id: meter.meter_id, end_time: text(hour + HOUR_MS) }];
  const { event_name, aggregation } = meter;
  const counted = { event_name, aggregation_type: aggregation.type, property_name: aggregation.field };
  // The meter does not have this bucket size. With its own, its bucket rows would answer instead of the raw events.
  const asked = { ...counted, bucket_size: 'HOUR' };
  return ['/events/usage', { ...of, ...asked, start_time: text(hour), end_time: text(now) }];
}

function report(took: Record<Way, number[]>): void {
  for (const way of WAYS) {
    const each = [0.5, 0.99].map((q) => `p${q * 100} ${fixed(quantile(took[way], q))} ms`);
    say(`  ${way}: ${each.join(', ')}, of ${took[way].length}`);
  }
  const [p50, p99] = [quantile(took['until now'], 0.5), quantile(took['until now'], 0.99)];
  const ratio = p50 / quantile(took['full hour'], 0.5);
  claim(
    'P5b until now',
    `p50 ${fixed(p50)} ms, p99 ${fixed(p99)} ms, ${fixed(ratio, 2)} of the full hour`,
    `${MUST_P50_MS} and ${MUST_P99_MS} ms`,
    p50 <= MUST_P50_MS && p99 <= MUST_P99_MS,
  );
}
