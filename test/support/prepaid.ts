/** Prepaid wallets of a test world: how they are filled, and the invoices that they pay. */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from './world.ts';

/** Calls cost 1 each, and the plan has a base fee of 50. */
export async function startPrepaidWorld(): Promise<World> {
  const world = await startWorld({ now: '2026-01-01T00:00:00Z' });
  await world.meter('calls');
  await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' }), fixed('50', { display_name: 'base' })]);
  return world;
}

/** Takes a function, because the world is started later. */
export function prepaid(getWorld: () => World) {
  async function ok<Method extends string, Path extends string>(method: Method, path: Path, body: object = {}) {
    const answer = await getWorld().api.request(method, path, { body });
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  }
  const walletOf = (external_customer_id: string, fields: object = {}) =>
    ok('POST', '/wallets', { external_customer_id, currency: 'usd', ...fields });
  const topUp = async (id: string, credits_to_add: string, fields: object = {}): Promise<string> =>
    (await ok('POST', `/wallets/${id}/top-up`, { credits_to_add, transaction_reason: 'FREE_CREDIT_GRANT', ...fields }))
      .wallet_transaction!.id;

  /** A customer subscribes in January, uses 120 and gets credits; then the clock moves to February. */
  async function january(customer: string, fill: (wallet_id: string) => Promise<unknown>, fields: object = {}) {
    getWorld().at('2026-01-01T00:00:00Z');
    await getWorld().subscribe(customer, 'Calls');
    const wallet = await walletOf(customer, fields);
    await fill(wallet.id);
    await getWorld().use(customer, 'calls', 120, { at: '2026-01-10T00:00:00Z' });
    await getWorld().waitForPipeline();
    return wallet;
  }
  async function finalOf(customer: string) {
    const { items } = await ok('POST', '/invoices/search', { customer_id: getWorld().id(`customer ${customer}`) });
    const draft = items.find((one) => one.invoice_status === 'DRAFT');
    await ok('POST', `/invoices/${draft!.id}/finalize`);
    return getWorld().get(`/invoices/${draft!.id}`);
  }

  /** Creates a wallet that pays for every charge, for a new customer. */
  const purseOf = async (customer: string, fields: object = {}) => {
    await getWorld().customer(customer);
    return walletOf(customer, { config: { allowed_price_types: ['ALL'] }, ...fields });
  };
  const oneOff = async ({ customer_id }: { customer_id: string }, amount: string) => {
    const amounts = { amount_due: amount, total: amount, subtotal: amount };
    const line_items = [{ display_name: 'work', amount, quantity: '1' }];
    const invoice = await ok('POST', '/invoices', {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      ...amounts,
      line_items,
    });
    await ok('POST', `/invoices/${invoice.id}/finalize`);
    return getWorld().get(`/invoices/${invoice.id}`);
  };

  return { ok, walletOf, topUp, january, finalOf, purseOf, oneOff };
}
