/** Three times the capacity from one tenant, beside another tenant that sends four requests a second. */
import { formatShares, watchCores } from './core-shares.ts';
import { type Answered, type Due, type RequestInput, sendWhenDue, type Service as Target } from './due-requests.ts';
import { post } from './processes.ts';
import { claim, fixed, flag, quantile, say } from './report.ts';
import { countRefusedAsLate } from './requests-capacity.ts';
import { mixRequests } from './requests-mix.ts';
import type { Side } from './requests-side.ts';
import { seeded } from './workload.ts';

const TIMES = 3;
const QUIET_RATE = 4;
const CONNECTIONS = 4_096;
const REFUSED_WITHIN_MS = 100;

export async function measureOverload(ours: Side, capacity: number): Promise<void> {
  const seconds = flag('overload', 60);
  const quiet = await makeQuietTenant(ours.service);
  const during = async (rate: number, seed: number) => {
    const flood = { seconds, rate, connections: CONNECTIONS };
    const stop = watchCores(ours.service);
    const answers = await Promise.all([
      sendWhenDue(ours.service, flood, mixRequests(ours.world, seed)),
      sendWhenDue(quiet, { seconds, rate: QUIET_RATE }, requestQuietly(seed)),
    ]);
    say(`    ${fixed(rate, 0)}/s; ${formatShares(stop())}`);
    return answers;
  };
  const [, calm] = await during(0.6 * capacity, 21);
  const [flooding, beside] = await during(TIMES * capacity, 22);
  reportFlood(flooding, { capacity: capacity * seconds, seconds });
  const [before, after] = [calm, beside].map((all) => quantile(all.map(countRefusedAsLate), 0.99)) as [number, number];
  const refused = beside.filter(({ status }) => status >= 400).length;
  claim(
    'quiet tenant',
    `p99 ${fixed(after)} ÷ ${fixed(before)} ms at 0.6 of the capacity = ${fixed(after / before, 2)}, refused ${refused} of ${beside.length}`,
    '2',
    after / before <= 2 && refused === 0,
  );
}

const isEvents = ({ kind }: Answered<string>) => kind === 'event' || kind === 'bulk of 20';

function reportFlood(
  answers: readonly Answered<string>[],
  { capacity, seconds }: { capacity: number; seconds: number },
): void {
  const completed = answers.filter(({ status }) => status < 400);
  const refused = answers.filter(({ status }) => status === 503);
  const other = answers.length - completed.length - refused.length;
  const took = (all: readonly Answered<string>[], part: number) =>
    all.length === 0
      ? 0
      : quantile(
          all.map(({ ms }) => ms),
          part,
        );
  say(`  of ${answers.length}: completed ${completed.length}, 503 ${refused.length}, other errors ${other}`);
  say(`  completed: p50 ${fixed(took(completed, 0.5), 0)}, p99 ${fixed(took(completed, 0.99), 0)} ms`);
  const in_time = completed.filter(({ second, ms }) => second * 1_000 + ms <= seconds * 1_000);
  // Events are admitted first, so the others are also compared with their own share of the capacity.
  const others = in_time.filter((one) => !isEvents(one)).length;
  const share = answers.filter((one) => !isEvents(one)).length / answers.length;
  const measured_share = fixed(others / (capacity * share), 2);
  claim(
    'completed in time ÷ capacity; without events ÷ their share',
    `${fixed(in_time.length / capacity, 2)}; ${measured_share}`,
    '0.8',
    in_time.length >= 0.8 * capacity && other === 0,
  );
  const [half, most] = [took(refused, 0.5), took(refused, 0.99)];
  const measured = `p50 ${fixed(half, 0)}, p99 ${fixed(most, 0)} ms`;
  claim('503 is told within', measured, `${REFUSED_WITHIN_MS} ms`, most <= REFUSED_WITHIN_MS);
  const bulks = answers.filter(({ kind }) => kind === 'bulk of 20');
  const accepted = bulks.filter(({ status }) => status < 400).length / bulks.length;
  claim('events of bulks accepted ÷ sent', fixed(accepted, 3), '0.95', accepted >= 0.95);
}

/** A second tenant with a key, a meter and a customer with some events. */
async function makeQuietTenant({ url }: Target): Promise<Target> {
  const call = async <Answer>(path: string, headers: Record<string, string>, body?: object) => {
    const response = await fetch(`${url}/v1${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  const user = { email: `quiet${Date.now()}@example.com`, password: 'Quiet-tenant-1', tenant_name: 'Quiet' };
  const { token } = await call<{ token: string }>('/auth/signup', {}, user);
  const authorization = { authorization: `Bearer ${token}` };
  const { environments } = await call<{ environments: { id: string }[] }>('/environments', authorization);
  const scoped = { ...authorization, 'x-environment-id': environments[0]!.id };
  const { api_key } = await call<{ api_key: string }>('/secrets/api/keys', scoped, { name: 'q', type: 'private_key' });
  const target = { url, api_key };
  await post(target, '/customers', { external_id: 'customer_0', name: 'quiet' });
  const meter = { name: 'quiet', event_name: 'call', aggregation: { type: 'COUNT' }, reset_usage: 'BILLING_PERIOD' };
  await post(target, '/meters', meter);
  return target;
}

function requestQuietly(seed: number): () => Due<'quiet'> {
  const random = seeded(seed);
  const requests: RequestInput[] = [
    { method: 'GET', path: '/v1/customers?limit=20' },
    { method: 'GET', path: '/v1/meters?limit=20' },
    { method: 'GET', path: '/v1/rbac/roles' },
    { method: 'POST', path: '/v1/events', body: { event_name: 'call', external_customer_id: 'customer_0' } },
  ];
  return () => ({ kind: 'quiet', request: requests[Math.floor(random() * requests.length)]! });
}
