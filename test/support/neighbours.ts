/**
 * Two tenants on one service. One puts load on it in many ways. The other sends single events, queries its usage, and
 * measures the delay. Used by the test of noisy neighbours and by the benchmark of the ratios.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readAddresses } from '../../storage/embedded/addresses.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import { hashApiKey, makeApiKey } from '../../storage/foundation/secrets/api-key.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import type { BodyFrom } from './answers.ts';

export type Caller = { readonly url: string; readonly api_key: string; readonly signal?: AbortSignal };

export async function call<Path extends string, const Method extends string = 'POST'>(
  caller: Caller,
  path: Path,
  options: { method?: Method; body?: unknown; signal?: AbortSignal } = {},
) {
  const { method = 'POST', body } = options;
  const signals = [caller.signal, options.signal].filter((signal) => signal !== undefined);
  const isRaw = Buffer.isBuffer(body);
  const response = await fetch(`${caller.url}/v1${path}`, {
    method,
    headers: { 'x-api-key': caller.api_key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : isRaw ? (body as unknown as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
    ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, body: (isJson ? JSON.parse(text) : text) as BodyFrom<Method, Path> };
}

/** Creates another tenant of the installation in this directory. */
export async function makeTenant(data_dir: string, url: string): Promise<Caller> {
  const postgres = connectPostgres(readAddresses(data_dir)!.postgres_url);
  try {
    const api_key = makeApiKey('private_key');
    const [tenant_id, environment_id, user_id] = [newId('tenant'), newId('environment'), newId('user')];
    await postgres('tenants').insert({ id: tenant_id, name: 'The neighbour' });
    await postgres('environments').insert({ id: environment_id, tenant_id, name: 'Live', type: 'production' });
    await postgres('users').insert({ id: user_id, tenant_id, name: 'Somebody', type: 'user', roles: ['super_admin'] });
    await postgres('secrets').insert({
      id: newId('secret'),
      tenant_id,
      environment_id,
      user_id,
      name: 'A key',
      type: 'private_key',
      key_hash: hashApiKey(api_key),
      display_id: 'sk_00***00',
    });
    return { url, api_key };
  } finally {
    await postgres.destroy();
  }
}

export type Felt = { readonly accepts_ms: number[]; readonly freshness_ms: number[] };

/** Sends one event after another and queries until each is counted, to measure the delays that a tenant sees. */
export class Neighbour {
  readonly #caller: Caller;
  #meter_id = '';
  #sent = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async begin(): Promise<void> {
    const meter = { name: 'Calls', event_name: 'neighbour', aggregation: { type: 'COUNT' } };
    this.#meter_id = (await call(this.#caller, '/meters', { body: meter })).body.id;
    await this.feel(2_000);
  }

  /** Sends up to 100 events, until one is counted within `ms`: the pipeline has then processed the backlog. */
  async recover(ms: number): Promise<void> {
    const felt: Felt = { accepts_ms: [], freshness_ms: [] };
    do await this.#once(felt);
    while (felt.freshness_ms.at(-1)! > ms && felt.freshness_ms.length < 100);
  }

  async feel(for_ms: number): Promise<Felt> {
    const felt: Felt = { accepts_ms: [], freshness_ms: [] };
    const until = performance.now() + for_ms;
    while (performance.now() < until) await this.#once(felt);
    return felt;
  }

  async #once(felt: Felt): Promise<void> {
    const began = performance.now();
    const event = { event_id: newId('event'), event_name: 'neighbour', external_customer_id: 'quiet', properties: {} };
    const { status } = await call(this.#caller, '/events', { body: event });
    if (status !== 202) throw new Error(`the neighbour's event was answered with ${status}`);
    const accepted = performance.now();
    felt.accepts_ms.push(accepted - began);
    this.#sent++;
    while ((await this.#counted()) < this.#sent) await new Promise((resolve) => setTimeout(resolve, 20));
    felt.freshness_ms.push(performance.now() - accepted);
  }

  async #counted(): Promise<number> {
    const asked = { meter_id: this.#meter_id, external_customer_id: 'quiet', start_time: '2020-01-01T00:00:00Z' };
    const { status, body } = await call(this.#caller, '/events/usage/meter', {
      body: { ...asked, end_time: '2100-01-01T00:00:00Z' },
    });
    if (status !== 200) throw new Error(`the neighbour's question was answered with ${status}: ${body.message}`);
    return body.event_count;
  }
}

export type Way = {
  readonly name: string;
  /** Creates records that the load needs. */
  prepare?(caller: Caller): Promise<void>;
  /** Number of concurrent requests; each is repeated as soon as it is answered. */
  readonly at_once: number;
  repeat(caller: Caller, turn: number): Promise<unknown>;
};

/** Puts load on the service until it is aborted. Returns the number of requests by status. */
export async function disturb(caller: Caller, way: Way, signal: AbortSignal): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  let turn = 0;
  const one = async () => {
    while (!signal.aborted) {
      const answer = await way.repeat({ ...caller, signal }, turn++).catch(() => undefined);
      if (signal.aborted) return;
      const status = String((answer as { status?: number } | undefined)?.status ?? 'none');
      statuses[status] = (statuses[status] ?? 0) + 1;
      // A rejection returns at once, so a client waits 20 ms before it repeats. Otherwise it would only load its own process.
      if (status !== '200' && status !== '202') await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await Promise.all(Array.from({ length: way.at_once }, one));
  return statuses;
}

const NOW_MS = Date.now();

/** Builds a body of events with new ids and varied properties. */
function bulk(event_name: string, count: number, propertiesOf: (index: number) => string): Buffer {
  const events = Array.from({ length: count }, (_, index) => {
    const timestamp = new Date(NOW_MS - (index % 600) * 60_000).toISOString();
    return `{"event_id":"${newId('event')}","event_name":"${event_name}","external_customer_id":"c${index % 50}","timestamp":"${timestamp}","properties":${propertiesOf(index)}}`;
  });
  return Buffer.from(`{"events":[${events.join(',')}]}`);
}

const meter = (caller: Caller, event_name: string, aggregation: object) =>
  call(caller, '/meters', { body: { name: event_name, event_name, aggregation } });

const send = (caller: Caller, body: Buffer) => call(caller, '/events/bulk', { body });
const ask = (caller: Caller, body: object) => call(caller, '/events/usage', { body });
const MINUTES = { window_size: 'MINUTE', aggregation_type: 'SUM', property_name: 'a' };
const daysAgo = (days: number) => new Date(NOW_MS - days * 86_400_000).toISOString();
const numbers = (index: number) => `{"a":1.${index}37,"b":0.${index}51,"c":12345678901234567890.123456789}`;

/** Ways in which a tenant could disturb the others. */
export const WAYS: readonly Way[] = [
  {
    name: 'an expression as heavy as is allowed',
    prepare: async (caller) =>
      void (await meter(caller, 'heavy', { type: 'SUM', expression: 'pow(a,b)+log(c) * a / b' })),
    at_once: 4,
    repeat: (caller) => send(caller, bulk('heavy', 1_000, numbers)),
  },
  {
    name: 'ad-hoc questions with such an expression',
    at_once: 16,
    repeat: (caller, turn) =>
      ask(caller, { event_name: 'heavy', aggregation_type: 'SUM', expression: `pow(a,b)+log(c)*a+${turn}` }),
  },
  {
    name: 'an expression beyond the cap',
    at_once: 8,
    repeat: (caller) =>
      ask(caller, {
        event_name: 'heavy',
        aggregation_type: 'SUM',
        expression: Array.from({ length: 50 }, () => 'pow(a,b)').join('+'),
      }),
  },
  {
    name: 'as many meters on one event name as there may be',
    prepare: async (caller) => {
      while ((await meter(caller, 'crowded', { type: 'SUM', field: 'a' })).status === 201);
    },
    at_once: 2,
    repeat: (caller) => send(caller, bulk('crowded', 1_000, numbers)),
  },
  {
    name: 'COUNT_UNIQUE of long values',
    prepare: async (caller) => void (await meter(caller, 'unique', { type: 'COUNT_UNIQUE', field: 'id' })),
    at_once: 2,
    repeat: (caller, turn) =>
      send(
        caller,
        bulk('unique', 1_000, (index) => `{"id":"${`${turn}.${index}`.padEnd(1_000, 'x')}"}`),
      ),
  },
  {
    name: 'groups without end',
    prepare: async (caller) =>
      void (await meter(caller, 'groups', { type: 'MAX', field: 'a', bucket_size: 'MINUTE', group_by: 'id' })),
    at_once: 2,
    repeat: (caller, turn) =>
      send(
        caller,
        bulk('groups', 1_000, (index) => `{"a":1,"id":"${turn}.${index}"}`),
      ),
  },
  {
    name: 'questions of tens of thousands of windows',
    at_once: 8,
    repeat: (caller) => ask(caller, { event_name: 'heavy', ...MINUTES, start_time: daysAgo(34) }),
  },
  {
    name: 'questions of more windows than are answered',
    at_once: 8,
    repeat: (caller) => ask(caller, { event_name: 'heavy', ...MINUTES, start_time: daysAgo(340) }),
  },
  {
    name: 'exports',
    at_once: 8,
    repeat: (caller) =>
      call(caller, `/events/usage/export?start_time=${daysAgo(30)}&end_time=${daysAgo(-1)}`, { method: 'GET' }),
  },
  {
    name: 'bodies at the limit of their size',
    at_once: 1,
    repeat: (caller) =>
      send(
        caller,
        bulk('large', 1_000, () => `{"text":"${'x'.repeat(30_000)}"}`),
      ),
  },
  {
    name: 'deep and escaped JSON',
    at_once: 2,
    repeat: (caller, turn) =>
      send(
        caller,
        bulk('heavy', 100, (index) =>
          index % 2 === 0
            ? `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`
            : `{"a":"${'\\u0031'.repeat(5_000)}${turn}","\\u0062":1}`,
        ),
      ),
  },
  {
    name: 'single events, as many as go',
    at_once: 64,
    repeat: (caller) =>
      call(caller, '/events', { body: { event_name: 'single', external_customer_id: 'c', properties: { a: 1 } } }),
  },
  {
    name: 'questions that are given up',
    at_once: 16,
    repeat: (caller, turn) =>
      call(caller, '/events/usage', {
        body: { event_name: 'heavy', aggregation_type: 'SUM', expression: `pow(a,b)+${turn}` },
        signal: AbortSignal.timeout(30),
      }),
  },
  {
    name: 'searches of properties',
    at_once: 8,
    repeat: (caller, turn) =>
      call(caller, '/events/query', { body: { property_filters: { a: [`${turn}`] }, count_total: true } }),
  },
];

/** Load by corrections. Each correction rebuilds rows while the bucket rows are locked, so this load is reported separately. */
export const CORRECTIONS: Way = {
  name: 'corrections, as many as go',
  at_once: 4,
  repeat: async (caller) => {
    const event_id = newId('event');
    const event = { event_id, event_name: 'heavy', external_customer_id: 'c0', properties: { a: 1, b: 2, c: 3 } };
    const sent = await call(caller, '/events', { body: event });
    return sent.status !== 202 ? sent : call(caller, `/events/${event_id}/void`, { body: { reason: 'noise' } });
  },
};

/** A process that puts load on the service of a caller. */
export class Disturber {
  readonly #child: ChildProcess;
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
    const file = fileURLToPath(new URL('./disturber.ts', import.meta.url));
    this.#child = fork(file, { execArgv: ['--import', './process/typescript.mjs'] });
  }

  /** Puts load on the service during `work`; returns the result of `work` and the statistics of the load. */
  async during<Answer>(
    way: Way,
    work: () => Promise<Answer>,
  ): Promise<{ answer: Answer; statuses: Record<string, number> }> {
    const begun = this.#told<{ begun: true }>();
    this.#child.send({ caller: this.#caller, way: way.name });
    await begun;
    const ended = this.#told<{ statuses: Record<string, number> }>();
    ended.catch(() => {}); // If the work fails, its error is thrown, not that of the disturber.
    try {
      const answer = await work();
      this.#child.send('stop');
      return { answer, ...(await ended) };
    } finally {
      this.#child.send('stop');
    }
  }

  stop(): void {
    this.#child.disconnect();
  }

  #told<Message>(): Promise<Message> {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('the disturber has ended'));
      this.#child.once('exit', onExit);
      this.#child.once('message', (message) => {
        this.#child.off('exit', onExit);
        resolve(message as Message);
      });
    });
  }
}
