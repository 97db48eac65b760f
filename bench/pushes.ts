/**
 * 10,000 final invoices of one tenant go to a provider that limits requests, and five of another tenant are made among them: the seconds until
 * these five can be paid there, and the rate of requests against the limit. `--invoices=10000`, `--seconds=30` of flood before the five.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Scope } from '../core/foundation/scope.ts';
import { listCapable } from '../integrations/find-capability.ts';
import { addPushJob } from '../storage/queue/pending-pushes.ts';
import { startTestApi, type TestApi } from '../test/support/api.ts';
import { StripeFake } from '../test/support/providers/stripe-fake.ts';
import { startSchedulerProcess } from '../test/support/scheduler-process.ts';
import { until } from '../test/support/until.ts';
import { check, claim, fixed, flag } from './report.ts';

const SECRETS_KEYS = 'a key of the settings that has 32 characters';
const LIMIT = Number(listCapable('account')['stripe']!.requests_per_second);
const MUST_SECONDS = 30;
const FEW = 5;

type Sender = { readonly scope: Scope; readonly key: string };

export async function run(): Promise<void> {
  const count = flag('invoices', 10_000);
  const fake = await new StripeFake().start();
  const config = { SECRETS_KEYS, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
  const api = await startTestApi({ now: new Date(), config });
  const [flood, other] = [await api.otherTenant(), await api.otherTenant()];
  const connection_id = await connect(api, flood);
  await connect(api, other);
  await addFlood(api, flood, { connection_id, count });
  // Both tenants share the fake, so it allows twice the limit of one, with a fifth in reserve.
  fake.limitRate({ requests: 2 * LIMIT * 1.2, per_ms: 1_000 });
  const child = await startSchedulerProcess(api.services, new Date());
  try {
    await until('the flood has begun', async () => fake.listInvoices().length > 0, 60_000);
    const [begun, before] = [performance.now(), fake.requests.length];
    await wait(flag('seconds', 30) * 1_000);
    const per_second = ((fake.requests.length - before) / (performance.now() - begun)) * 1_000;
    const since = performance.now();
    const ids = await addInvoices(api, other, FEW);
    await until('the five are there', async () => countOpen(fake, ids) === FEW, 300_000);
    const seconds = (performance.now() - since) / 1_000;
    check(fake.listInvoices().length < count, 'the flood lasts until the five are there');
    claim('seconds until the five can be paid', fixed(seconds), `${MUST_SECONDS}`, seconds <= MUST_SECONDS);
    claim('requests a second of the flood', fixed(per_second), `at most ${LIMIT}`, per_second <= LIMIT);
  } finally {
    child.kill('SIGKILL');
    await api.stop();
    await fake.stop();
  }
}

async function request(api: TestApi, { key }: Sender, path: `/${string}`, body: object): Promise<string> {
  const answer = await api.request('POST', path, { key, body });
  check(answer.status === 201, `${path} answers ${answer.status}: ${answer.text}`);
  return answer.body.id as string;
}

function connect(api: TestApi, sender: Sender): Promise<string> {
  const encrypted_secret_data = { stripe: { secret_key: 'sk_live_fake' } };
  return request(api, sender, '/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
}

async function addInvoices(api: TestApi, sender: Sender, count: number): Promise<string[]> {
  const customer_id = await request(api, sender, '/customers', { external_id: 'acme', name: 'Acme' });
  const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
  const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
  const ids: string[] = [];
  for (let n = 0; n < count; n++)
    ids.push(await request(api, sender, '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' }));
  return ids;
}

/** Copies one invoice, and marks the copies as the dispatch of their events would. */
async function addFlood(
  api: TestApi,
  sender: Sender,
  { connection_id, count }: { connection_id: string; count: number },
): Promise<void> {
  const [id] = await addInvoices(api, sender, 1);
  const { postgres } = api.services;
  const { tenant_id, environment_id } = sender.scope;
  await postgres.raw(
    `insert into invoices select (jsonb_populate_record(i, jsonb_build_object('id', 'inv_' || n, 'invoice_number', 'COPY-' || n, 'idempotency_key', null))).*
       from invoices i, generate_series(1, ?::integer) n where i.id = ?`,
    [count, id!],
  );
  await postgres.raw(
    `insert into invoice_line_items
     select (jsonb_populate_record(l, jsonb_build_object('id', 'inv_line_' || n, 'invoice_id', 'inv_' || n))).*
       from invoice_line_items l, generate_series(1, ?::integer) n where l.invoice_id = ?`,
    [count, id!],
  );
  await postgres.raw(
    `insert into integration_mappings (id, tenant_id, environment_id, connection_id, provider_type, entity_type, entity_id, mapping_state, pending_since)
     select 'map_' || n, ?, ?, ?, 'stripe', 'invoice', 'inv_' || n, 'intended', now() from generate_series(1, ?::integer) n`,
    [tenant_id, environment_id, connection_id, count],
  );
  await postgres.transaction((transaction) =>
    addPushJob(transaction, { id: connection_id, tenant_id, environment_id }),
  );
}

function countOpen(fake: StripeFake, ids: readonly string[]): number {
  const isOne = ({ status, metadata }: ReturnType<StripeFake['listInvoices']>[number]) =>
    status === 'open' && ids.includes(metadata['farthing_invoice_id'] ?? '');
  return fake.listInvoices().filter(isOne).length;
}
