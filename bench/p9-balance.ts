/**
 * P9: 5,000 reads a second of 100,000 customers while events arrive: a third wallet balances, a third usage against limits, a third
 * entitlements, each of a random customer. A separate process sends the reads and the events. Server time is measured by node's HTTP server
 * in the service (request-times.ts). Client time is reported as well, from the instant at which a read was due. First every customer is
 * read once, which measures uncached reads; with `--warm=0` these happen under the load. At the end, balances are compared with previews.
 * `--customers=100000 --rate=5000 --seconds=30 --events=2000 --warm=1 --why=1 --beside=0`: with `--beside=n`, n separate API processes get
 * the reads, and server time, CPU and event loop are those of the first.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { type BlockedIntervals, LONG_MS } from './blocked-intervals.ts';
import { cpuOfThread, lineOfThread } from './cpu.ts';
import { copyName, KINDS, makeCustomers, PATHS, sendEvents } from './p9-customers.ts';
import type { Reading, Readings } from './p9-readers.ts';
import { type EmbeddedService, type Service, startService, startWorker, type Worker } from './processes.ts';
import { check, claim, fixed, flag, quantile, say } from './report.ts';
import type { RequestTimes } from './request-times.ts';

const MUST_MS = 5;
/** Bound of a separate API process, at 3,000 reads a second. */
const BESIDE_MUST_MS = 20;
const AIM_MS = 1.5;
const CONNECTIONS = 32;
const WHY_SECONDS = 8;
const WHO_MAX = 10;
/** Number of customers read at a time before the load. */
const WARMED_AT_ONCE = 256;

type Size = { readonly customers: number; readonly rate: number; readonly seconds: number; readonly events: number };
type Readers = Worker<Reading, Readings>;

export async function run(): Promise<void> {
  const size = {
    customers: flag('customers', 100_000),
    rate: flag('rate', 5_000),
    seconds: flag('seconds', 30),
    events: flag('events', 2_000),
  };
  const settings = { RATE_LIMIT_REQUESTS: '10000000' };
  const service = await startService('whole', settings);
  const besides: EmbeddedService[] = [];
  for (let n = 0; n < flag('beside', 0); n++) besides.push(await besideOf(service, settings));
  const asked = besides[0] ?? service;
  const urls = (besides.length > 0 ? besides : [service]).map((one) => one.url).join(' ');
  const readers = await startWorker<Reading, Readings>('./p9-readers.ts');
  try {
    const began = performance.now();
    await makeCustomers(service, size.customers);
    await useSome(service, size);
    say(`  ${size.customers} customers made in ${fixed((performance.now() - began) / 1000, 0)} s`);
    if (flag('warm', 1) === 1)
      for (const one of besides.length > 0 ? besides : [service]) await warm(one, readers, size);
    await measure(service, readers, size, asked, urls);
    if (flag('why', 1) === 1) await tellWhy(asked, readers, size);
    await compare(service, size);
  } finally {
    readers.stop();
    for (const beside of besides) await beside.stop();
    await service.stop();
  }
}

/** Starts a separate API process for the reads, next to the service that accepts the events. */
async function besideOf(service: EmbeddedService, settings: Record<string, string>): Promise<EmbeddedService> {
  const urls = await service.call<Record<string, string>>({ what: 'store_urls' });
  return startService('beside', { ...settings, ...urls, BOOTSTRAP_API_KEY: service.api_key });
}

async function useSome(service: Service, { customers }: Size): Promise<void> {
  const some = Array.from({ length: Math.min(customers, 20_000) }, (_, n) => n);
  await sendEvents(service, some);
  await service.waitUntilMerged();
}

async function warm(service: EmbeddedService, readers: Readers, { customers }: Size): Promise<void> {
  const heap = await heapOf(service);
  const { url, api_key } = service;
  const asked = { url, api_key, customers, connections: WARMED_AT_ONCE };
  const cpu = service.cpu();
  const go = await readers.prepare({ ...asked, what: 'everybody', atOnce: WARMED_AT_ONCE });
  const { elapsed_ms: wall_ms } = await go();
  const used = service.cpu();
  const ms = (now: number, then: number) => fixed(((now - then) / customers) * 1000);
  say(
    `  everybody gathered for the first time in ${fixed(wall_ms / 1000, 0)} s: ${ms(used.total, cpu.total)} ms of CPU a customer (Postgres ${ms(used.postgres, cpu.postgres)}, ClickHouse ${ms(used.clickhouse, cpu.clickhouse)})`,
  );
  const kept = (await heapOf(service)) - heap;
  say(
    `  kept of them: ${fixed(kept / 2 ** 20, 0)} MiB, ${fixed(kept / customers / 1024)} KiB a customer; the service holds ${fixed(residentOf(service) / 2 ** 20, 0)} MiB`,
  );
}

/** Heap in bytes after a garbage collection. */
function heapOf(service: Service): Promise<number> {
  return service.call({ what: 'heap' });
}

/** Memory in bytes of the service without its stores. */
function residentOf({ pids: [pid] }: EmbeddedService): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

async function measure(
  service: EmbeddedService,
  readers: Readers,
  size: Size,
  asked: EmbeddedService,
  url: string,
): Promise<void> {
  const { api_key } = asked;
  const go = await readers.prepare({
    url,
    api_key,
    connections: CONNECTIONS,
    what: 'load',
    events_url: service.url,
    ...size,
  });
  const before = await answersOf(asked);
  const own = asked.pids[0]!;
  const main_of = () => cpuOfThread(own, own);
  const line_of = () => lineOfThread(own, own);
  const [cpu, client, main, line] = [service.cpu(), readers.cpu(), main_of(), line_of()];
  await asked.call({ what: 'watch_requests' });
  const { took_ms, elapsed_ms: wall_ms, events_sent } = await go();
  const times = await asked.call<RequestTimes>({ what: 'watched_requests' });
  const [used, client_used, main_after, line_after] = [service.cpu(), readers.cpu(), main_of(), line_of()];
  const after = await answersOf(asked);
  const seconds = wall_ms / 1000;
  const cores = (now: number, then: number) => fixed((now - then) / seconds, 2);
  const count = took_ms.length;
  say(
    `  ${count} reads and ${events_sent} events in ${fixed(seconds)} s: ${fixed(count / seconds, 0)} reads a second, load of the machine ${fixed(loadavg()[0]!)}`,
  );
  say(
    `  cores: ${cores(used.total, cpu.total)}, of them ClickHouse ${cores(used.clickhouse, cpu.clickhouse)}, Postgres ${cores(used.postgres, cpu.postgres)}; beside them who asks ${cores(client_used, client)}`,
  );
  const us = (now: number, then: number) => fixed(((now - then) / count) * 1e6, 0);
  const node = used.total - used.clickhouse - used.postgres - (cpu.total - cpu.clickhouse - cpu.postgres);
  say(
    `  CPU of a read, with the events beside it: ${fixed((node / count) * 1e6, 0)} µs in node, of them its main thread ${us(main_after, main)}; Postgres ${us(used.postgres, cpu.postgres)}; the main thread stood in line for a core for ${fixed(((line_after - line) / seconds) * 100, 0)} % of the time`,
  );
  say(`  answers: ${[...after].map(([from, n]) => `${n - (before.get(from) ?? 0)} ${from}`).join(', ')}`);
  const { loop, garbage } = times;
  say(
    `  event loop: busy ${fixed(loop.busy * 100, 0)} %, late p50 ${fixed(loop.p50_ms)}, p99 ${fixed(loop.p99_ms)}, at most ${fixed(loop.max_ms)} ms; pauses for garbage: ${said(garbage.minor)}, of what is old ${said(garbage.other)}`,
  );
  tell(times, { count, seconds, rate: size.rate });
  say(`  as a client sees it, from when each was due: ${quantiles(took_ms)}`);
}

/** Repeats the load for some seconds under a CPU profile, which itself takes time. */
async function tellWhy(service: Service, readers: Readers, size: Size): Promise<void> {
  const { url, api_key } = service;
  const seconds = Math.min(WHY_SECONDS, size.seconds);
  const load = { url, api_key, connections: CONNECTIONS, what: 'load', ...size, seconds } as const;
  const go = await readers.prepare(load);
  await service.call({ what: 'watch_stretches' });
  await go();
  const { intervals: stretches, slowest } = await service.call<BlockedIntervals>({ what: 'watched_stretches' });
  say(
    `  who held the event loop in ${seconds} s more, the longest first (in all; longest at one time; how often more than ${LONG_MS} ms):`,
  );
  for (const { who, total_ms, longest_ms, long } of stretches.slice(0, WHO_MAX))
    say(`    ${fixed(total_ms, 0)} ms; ${fixed(longest_ms)} ms; ${long}: ${who}`);
  const { count, from_ms, mean_ms, blocked_ms: held_ms } = slowest;
  say(
    `  the slowest hundredth of these reads, ${count} of ${fixed(from_ms)} ms and more: ${fixed(mean_ms)} ms in the mean, in which the event loop was held by`,
  );
  for (const [who, ms] of held_ms.slice(0, WHO_MAX)) say(`    ${fixed(ms, 2)} ms: ${who}`);
}

function said({ count, total_ms, p50_ms, max_ms }: RequestTimes['garbage']['minor']): string {
  return `${count} of ${fixed(total_ms, 0)} ms, half of them within ${fixed(p50_ms)}, ${fixed(max_ms)} at most`;
}

function tell(
  { cached_ms: kept_ms, framework_ms }: RequestTimes,
  { rate, seconds, count }: Record<string, number>,
): void {
  const all = [...kept_ms, ...framework_ms];
  const must_ms = flag('beside', 0) > 0 ? BESIDE_MUST_MS : MUST_MS;
  const within = (ms: number) =>
    `${fixed((all.filter((one) => one <= ms).length / all.length) * 100, 2)} % within ${ms}`;
  say(`  answered before the framework: ${fixed((kept_ms.length / all.length) * 100, 2)} %, ${quantiles(kept_ms)}`);
  if (framework_ms.length > 0)
    say(
      `  by the framework, gathered or behind something that was read first: ${framework_ms.length}, ${quantiles(framework_ms)}`,
    );
  const isReached = quantile(all, 0.99) <= must_ms && count! / seconds! >= rate! * 0.98;
  const said = `${quantiles(all)}; ${within(must_ms)}, ${within(AIM_MS)}`;
  claim('server time of all reads', said, `p99 within ${must_ms} ms at ${rate} a second`, isReached);
}

function quantiles(took_ms: readonly number[]): string {
  const said = [0.5, 0.9, 0.99, 0.999].map((q) => `p${q * 100} ${fixed(quantile(took_ms, q), 2)}`);
  return `${said.join(', ')} ms`;
}

/** Number of answers by their source so far, from the metrics of the service. */
async function answersOf({ url }: Service): Promise<Map<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const found = text.matchAll(/^farthing_running_answers_total\{from="(\w+)"\} (\d+)/gm);
  return new Map([...found].map(([, from, n]) => [from!, Number(n)]));
}

/** Compares cached balances with previews. */
async function compare(service: Service, { customers }: Size): Promise<void> {
  await service.waitUntilMerged();
  for (let taken = 0; taken < 25; taken++) {
    const n = Math.floor(Math.random() * customers);
    const headers = { 'x-api-key': service.api_key };
    const balance = (await (await fetch(`${service.url}${PATHS[KINDS[0]](n)}`, { headers })).json()) as {
      current_period_usage: string;
    };
    const body = { subscription_id: copyName('subs', n) };
    const { total } = await service.post<{ total: string }>('/invoices/preview', body);
    check(
      Number(balance.current_period_usage) === Number(total),
      `${n}: ${balance.current_period_usage}, the preview ${total}`,
    );
  }
}
