/**
 * P9: balances and entitlement reads at 5,000 a second, of 100,000 customers, while events arrive: a third balances of wallets, a third
 * usage against limits, a third entitlements, each of a customer taken at random. Everybody is read once first, which is what gathering
 * costs. Server time is what the service says of itself at /metrics; beside it what a client sees, whose own queue is in it. In the
 * end balances are compared with those of a preview.
 * `--customers=100000 --rate=5000 --seconds=30 --events=2000`.
 */
import { readFileSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { type EmbeddedService, post, type Service, startService } from './processes.ts';
import { check, claim, fixed, flag, quantile, say } from './report.ts';

const MUST_MS = 5;
const AIM_MS = 1.5;
const CONNECTIONS = 32;
const MONTHLY = { billing_period: 'MONTHLY', billing_period_count: 1 };

type Size = { readonly customers: number; readonly rate: number; readonly seconds: number; readonly events: number };

export async function run(): Promise<void> {
  const size = {
    customers: flag('customers', 100_000),
    rate: flag('rate', 5_000),
    seconds: flag('seconds', 30),
    events: flag('events', 2_000),
  };
  const service = await startService('whole', { RATE_LIMIT_REQUESTS: '10000000' });
  try {
    await makeCustomers(service, size.customers);
    const readers = new Readers(service);
    await readers.open();
    await warm(service, readers, size);
    await measure(service, readers, size);
    await compare(service, readers, size);
    readers.close();
  } finally {
    await service.stop();
  }
}

/** One through the interface, and the others as copies of its rows: what is measured is reading. */
async function makeCustomers(service: Service, customers: number): Promise<void> {
  const made = async (path: string, body: object) => (await service.post<{ id: string }>(path, body)).id;
  const aggregation = { type: 'SUM', field: 'n' };
  const meter_id = await made('/meters', { name: 'Calls', event_name: 'calls', aggregation });
  const plan_id = await made('/plans', { name: 'Pro' });
  const price = { entity_type: 'PLAN', entity_id: plan_id, currency: 'usd', billing_cadence: 'RECURRING', ...MONTHLY };
  const terms = { ...price, type: 'USAGE', invoice_cadence: 'ARREAR', price_unit_type: 'FIAT', meter_id };
  const tiers = [
    { up_to: 100, unit_amount: '0.05' },
    { up_to: null, unit_amount: '0.01' },
  ];
  await made('/prices', { ...terms, billing_model: 'TIERED', tier_mode: 'SLAB', tiers });
  const feature_id = await made('/features', { name: 'Calls', lookup_key: 'calls', type: 'metered', meter_id });
  const limit = { usage_limit: 50, usage_reset_period: 'MONTHLY' };
  await made('/entitlements', { plan_id, feature_id, feature_type: 'metered', ...limit });
  await made('/customers', { external_id: 'template', name: 'template' });
  const of = { external_customer_id: 'template', currency: 'usd' };
  await made('/subscriptions', { ...of, plan_id, ...MONTHLY });
  await made('/wallets', of);
  const copies = (table: string, fields: string) =>
    service.ask({
      what: 'postgres',
      sql: `insert into ${table} select (jsonb_populate_record(t, jsonb_build_object(${fields}))).*
              from ${table} t, generate_series(0, ${customers - 1}) as n`,
    });
  await copies('customers', `'id', ${idOf('cust')}, 'external_id', 'customer_' || n`);
  await copies('subscriptions', `'id', ${idOf('subs')}, 'customer_id', ${idOf('cust')}`);
  const line = `'id', ${idOf('subs_line')}, 'subscription_id', ${idOf('subs')}, 'customer_id', ${idOf('cust')}`;
  await copies('subscription_line_items', line);
  await copies('wallets', `'id', ${idOf('wallet')}, 'customer_id', ${idOf('cust')}`);
  await service.ask({ what: 'postgres', sql: 'analyze' });
}

function idOf(prefix: string): string {
  return `'${prefix}_' || lpad(upper(to_hex(n)), 26, '0')`;
}

function nameOf(prefix: string, n: number): string {
  return `${prefix}_${n.toString(16).toUpperCase().padStart(26, '0')}`;
}

const KINDS = ['balance', 'usage', 'entitlements'] as const;
const PATHS: Record<(typeof KINDS)[number], (n: number) => string> = {
  balance: (n) => `/v1/wallets/${nameOf('wallet', n)}/balance/real-time`,
  usage: (n) => `/v1/customers/usage?customer_id=${nameOf('cust', n)}`,
  entitlements: (n) => `/v1/customers/${nameOf('cust', n)}/entitlements`,
};

/** A client that costs little: plain sockets, one request at a time on each. */
class Readers {
  readonly took: number[] = [];
  readonly #free: Reader[] = [];
  readonly #waiting: { path: string; asked: number; done(body: string): void }[] = [];
  readonly #url: URL;
  readonly #key: string;

  constructor({ url, api_key }: Service) {
    this.#url = new URL(url);
    this.#key = api_key;
  }

  async open(): Promise<void> {
    for (let n = 0; n < CONNECTIONS; n++) this.#free.push(await Reader.connect(this.#url, this.#key));
  }

  /** Asked now; where all are busy it waits, and the wait is in what it took. */
  read(path: string): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push({ path, asked: performance.now(), done: resolve });
      this.#next();
    });
  }

  #next(): void {
    while (this.#waiting.length > 0 && this.#free.length > 0) {
      const reader = this.#free.pop()!;
      const { path, asked, done } = this.#waiting.shift()!;
      void reader.get(path).then(({ status, body }) => {
        check(status === 200, `${path}: ${status} ${body}`);
        this.took.push(performance.now() - asked);
        this.#free.push(reader);
        done(body);
        this.#next();
      });
    }
  }

  close(): void {
    for (const reader of this.#free) reader.close();
  }
}

type Answer = { readonly status: number; readonly body: string };

class Reader {
  readonly #socket: Socket;
  readonly #head: string;
  #text = '';
  #answered: ((answer: Answer) => void) | null = null;

  static connect({ hostname, port }: URL, key: string): Promise<Reader> {
    return new Promise((resolve) => {
      const socket = createConnection({ host: hostname, port: Number(port), noDelay: true }, () =>
        resolve(new Reader(socket, ` HTTP/1.1\r\nHost: ${hostname}\r\nx-api-key: ${key}\r\n\r\n`)),
      );
    });
  }

  constructor(socket: Socket, head: string) {
    this.#socket = socket;
    this.#head = head;
    socket.setEncoding('latin1').on('data', (text: string) => this.#heard(text));
  }

  get(path: string): Promise<Answer> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#socket.write(`GET ${path}${this.#head}`);
    });
  }

  #heard(text: string): void {
    this.#text += text;
    const end = this.#text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#text)![1]);
    if (this.#text.length < end + 4 + length) return;
    const answer = { status: Number(this.#text.slice(9, 12)), body: this.#text.slice(end + 4) };
    this.#text = '';
    this.#answered!(answer);
  }

  close(): void {
    this.#socket.destroy();
  }
}

async function warm(service: EmbeddedService, readers: Readers, { customers }: Size): Promise<void> {
  await send(
    service,
    Array.from({ length: Math.min(customers, 20_000) }, (_, n) => n),
  );
  await service.settled();
  const [began, cpu, before] = [performance.now(), service.cpu().total, residentOf(service)];
  for (const kind of KINDS) {
    for (let from = 0; from < customers; from += 200) {
      const some = Array.from({ length: Math.min(200, customers - from) }, (_, index) => from + index);
      await Promise.all(some.map((n) => readers.read(PATHS[kind](n))));
    }
  }
  const seconds = (performance.now() - began) / 1000;
  const each = ((service.cpu().total - cpu) / customers) * 1000;
  const bytes = (residentOf(service) - before) / customers;
  say(
    `  ${customers} customers gathered for the first time in ${fixed(seconds, 0)} s: ${fixed(each)} ms of CPU and ${fixed(bytes / 1024)} KiB of memory each`,
  );
  readers.took.length = 0;
}

/** Bytes of memory of the service without its stores. */
function residentOf({ pids: [pid] }: EmbeddedService): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

async function send({ url, api_key }: Service, customers: readonly number[]): Promise<void> {
  for (let from = 0; from < customers.length; from += 1000) {
    const events = customers.slice(from, from + 1000).map((n) => ({
      event_name: 'calls',
      external_customer_id: `customer_${n}`,
      timestamp: new Date().toISOString(),
      properties: { n: 1 + (n % 7) },
    }));
    await post({ url, api_key }, '/events/bulk', { events });
  }
}

async function measure(service: Service, readers: Readers, { customers, rate, seconds, events }: Size): Promise<void> {
  const any = () => Math.floor(Math.random() * customers);
  let [isOver, sent] = [false, 0];
  const arriving = (async () => {
    const began = performance.now();
    while (!isOver && events > 0) {
      const due = Math.floor(((performance.now() - began) / 1000) * events) - sent;
      if (due > 0) await send(service, Array.from({ length: Math.min(due, 1000) }, any));
      sent += Math.max(0, Math.min(due, 1000));
      await pause(50);
    }
  })();
  const before = await histogram(service);
  const cpu = service.cpu();
  const began = performance.now();
  const reads: Promise<string>[] = [];
  let asked = 0;
  while (performance.now() - began < seconds * 1000) {
    const due = Math.floor(((performance.now() - began) / 1000) * rate);
    for (; asked < due; asked++) reads.push(readers.read(PATHS[KINDS[asked % KINDS.length]!](any())));
    await pause(1);
  }
  await Promise.all(reads);
  const took = (performance.now() - began) / 1000;
  isOver = true;
  await arriving;
  const after = await histogram(service);
  const used = service.cpu();
  say(`  ${asked} reads and ${sent} events in ${fixed(took)} s: ${fixed(asked / took, 0)} reads a second`);
  const cores = (now: number, then: number) => fixed((now - then) / took, 2);
  say(
    `  cores: ${cores(used.total, cpu.total)}, of them ClickHouse ${cores(used.clickhouse, cpu.clickhouse)}, Postgres ${cores(used.postgres, cpu.postgres)}`,
  );
  const client = [0.5, 0.99].map((q) => `p${q * 100} ${fixed(quantile(readers.took, q), 2)} ms`).join(', ');
  say(`  as a client sees it: ${client}`);
  const [within, p50, p99] = [
    shareWithin(before, after, MUST_MS),
    quantileOf(before, after, 0.5),
    quantileOf(before, after, 0.99),
  ];
  const said = `p50 ${p50}, p99 ${p99}; ${fixed(within * 100, 2)} % within ${MUST_MS} ms, ${fixed(shareWithin(before, after, AIM_MS) * 100, 2)} % within ${AIM_MS} ms`;
  const isReached = within >= 0.99 && asked / took >= rate * 0.98;
  claim('server time of balances and entitlements', said, `p99 within ${MUST_MS} ms at ${rate} a second`, isReached);
  say(`  answers: ${await answersOf(service)}`);
}

type Counts = ReadonlyMap<number, number>;

/** How many of the reads were answered within so many milliseconds, by the service's own clock. */
async function histogram({ url }: Service): Promise<Counts> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const counts = new Map<number, number>();
  for (const line of text.split('\n')) {
    const found =
      /^http_request_duration_seconds_bucket\{le="([^"]+)",method="GET",route="(\/wallets\/[^"]+|\/customers\/[^"]+)"/.exec(
        line,
      );
    if (!found) continue;
    const le = found[1] === '+Inf' ? Number.POSITIVE_INFINITY : Number(found[1]) * 1000;
    counts.set(le, (counts.get(le) ?? 0) + Number(line.slice(line.lastIndexOf(' '))));
  }
  return counts;
}

function shareWithin(before: Counts, after: Counts, ms: number): number {
  const between = (le: number) => (after.get(le) ?? 0) - (before.get(le) ?? 0);
  return between(ms) / between(Number.POSITIVE_INFINITY);
}

/** The bound below which so many lie. */
function quantileOf(before: Counts, after: Counts, part: number): string {
  const bounds = [...after.keys()].sort((a, b) => a - b);
  return `≤ ${bounds.find((le) => shareWithin(before, after, le) >= part)} ms`;
}

async function answersOf({ url }: Service): Promise<string> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return [...text.matchAll(/^farthing_running_answers_total\{from="(\w+)"\} (\d+)/gm)]
    .map(([, from, n]) => `${n} ${from}`)
    .join(', ');
}

/** What is kept against what a preview says. */
async function compare(service: Service, readers: Readers, { customers }: Size): Promise<void> {
  await service.settled();
  for (let taken = 0; taken < 25; taken++) {
    const n = Math.floor(Math.random() * customers);
    const balance = JSON.parse(await readers.read(PATHS.balance(n)));
    const body = { subscription_id: nameOf('subs', n) };
    const { total } = await service.post<{ total: string }>('/invoices/preview', body);
    check(
      Number(balance.current_period_usage) === Number(total),
      `${n}: ${balance.current_period_usage}, the preview ${total}`,
    );
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
