/**
 * P4: time from accepted to visible in usage, at half of the load that saturates the service. A probe sends one event at a time for its own
 * customer and queries that customer's usage repeatedly over HTTP.
 */
import { DAY_MS } from '../core/foundation/time/durations.ts';
import { makeMeters, pause, type Service, startGenerator, startService } from './processes.ts';
import { check, claim, fixed, flag, quantile, say } from './report.ts';
import { meterDefinitions } from './workload.ts';

const MUST_MS = 1_500;
const PROBE_EVERY_MS = 100;
const ASK_PAUSE_MS = 50;

export async function run(): Promise<void> {
  const saturating = flag('events', 200_000);
  const seconds = flag('seconds', 20);
  const service = await startService();
  const generator = await startGenerator();
  try {
    const meter_ids = await makeMeters(service);
    const meter_id =
      meter_ids[
        meterDefinitions().findIndex((meter) => meter.aggregation.type === 'COUNT' && meter.filters.length === 0)
      ]!;
    const common = { url: service.url, api_key: service.api_key, size: 500, connections: 4 };
    const warm = await generator.prepare({ ...common, seed: 1, total: saturating / 2 });
    await warm();
    await service.waitUntilMerged();
    const most = await saturation(
      service,
      await generator.prepare({ ...common, seed: 2, total: saturating }),
      saturating,
    );
    const rate = most / 2;
    say(`  saturated at ${Math.round(most)} events/s on the clock; now ${Math.round(rate)}/s for ${seconds} s`);
    const go = await generator.prepare({ ...common, seed: 3, total: Math.floor(rate * seconds), rate });
    const probe = new Probe(service, meter_id);
    const watching = probe.run(seconds * 1000);
    const { latencies_ms } = await go();
    const delays = await watching;
    const [p50, p99, worst] = [quantile(delays, 0.5), quantile(delays, 0.99), Math.max(...delays)];
    say(
      `  accepting a body of 500: p50 ${fixed(quantile(latencies_ms, 0.5))} ms, p99 ${fixed(quantile(latencies_ms, 0.99))} ms`,
    );
    const measured = `p99 ${Math.round(p99)} ms, p50 ${Math.round(p50)} ms, worst ${Math.round(worst)} ms of ${delays.length} probes`;
    claim('P4 accepted to visible', measured, `${MUST_MS} ms`, p99 <= MUST_MS);
  } finally {
    generator.stop();
    await service.stop();
  }
}

/** Events per second of elapsed time if they are sent as fast as they are accepted, until the last is in the stores. */
async function saturation(service: Service, go: () => Promise<unknown>, events: number): Promise<number> {
  const began = performance.now();
  await go();
  while ((await service.call<number>({ what: 'lag' })) > 0) await pause(50);
  return events / ((performance.now() - began) / 1000);
}

class Probe {
  readonly #service: Service;
  readonly #meter_id: string;
  readonly #accepted_at: number[] = [];
  readonly #delays: number[] = [];

  constructor(service: Service, meter_id: string) {
    this.#service = service;
    this.#meter_id = meter_id;
  }

  /** Events become visible in the order of the log, so the visible count shows which ones are visible. */
  async run(for_ms: number): Promise<number[]> {
    const until = performance.now() + for_ms;
    const sending = this.#sendUntil(until);
    let sent_all = false;
    void sending.then(() => (sent_all = true));
    while (!sent_all || this.#delays.length < this.#accepted_at.length) {
      const seen = await this.#seen();
      const now = performance.now();
      while (this.#delays.length < seen) this.#delays.push(now - this.#accepted_at[this.#delays.length]!);
      check(performance.now() < until + 60_000, 'an accepted event did not become visible');
      await pause(ASK_PAUSE_MS);
    }
    await sending;
    return this.#delays;
  }

  async #sendUntil(until: number): Promise<void> {
    const { event_name } = meterDefinitions()[0]!;
    while (performance.now() < until) {
      const place = this.#accepted_at.push(Number.NaN) - 1;
      await this.#service.post('/events', { event_name, external_customer_id: 'probe', properties: {} });
      this.#accepted_at[place] = performance.now();
      await pause(PROBE_EVERY_MS);
    }
  }

  async #seen(): Promise<number> {
    const asked = {
      meter_id: this.#meter_id,
      external_customer_id: 'probe',
      start_time: new Date(Date.now() - DAY_MS).toISOString(),
      end_time: new Date(Date.now() + DAY_MS).toISOString(),
    };
    const answer = await this.#service.post<{ event_count: number }>('/events/usage/meter', asked);
    return answer.event_count;
  }
}
