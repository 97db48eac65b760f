/**
 * A commitment of one billing period is one commitment, also where a price sync ends its line inside the period and another goes on
 * (docs/rules/commitments.md, "Shorter periods").
 */
import { expect } from 'chai';
import { trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import type { Price, SubscriptionUsage } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { check, provenBy } from '../support/verifier.ts';
import { startWorld, summarizeInvoice, usage, type World } from '../support/world.ts';

const RUNNING = ['lacking', 'above', 'free'];

describe('scenario: commitments of lines that are followed inside a period', () => {
  let world: World;
  const previews: Record<string, ReturnType<typeof summarizeInvoice>> = {};
  const exported: Record<string, string[]> = {};
  const used: Record<string, SubscriptionUsage> = {};

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.on('2026-01-01');
    await world.plan('Pro', []);
    const price = await world.price('Pro', usage('calls', '1', { display_name: 'calls' }));
    const committed = (commitment_amount: string, more: object = {}) => ({
      line_item_commitments: { [price.id]: { commitment_amount, overage_factor: '1.5', ...more } },
    });
    const true_up = { enable_true_up: true };
    await world.subscribe('lacking', 'Pro', committed('200', true_up));
    await world.subscribe('above', 'Pro', committed('200', true_up));
    await world.subscribe('free', 'Pro', committed('200'));
    await world.subscribe('changed', 'Pro', committed('200', true_up));
    await world.subscribe('restated', 'Pro', committed('310', true_up));
    await world.subscribe('cancelled', 'Pro', committed('310', true_up));
    await use('2026-01-05T00:00:00Z', {
      lacking: 69.04,
      above: 150,
      free: 60,
      changed: 69.04,
      restated: 110,
      cancelled: 150,
    });
    await world.on('2026-01-11');
    await change('changed', { amount: '3' });
    await change('restated', { commitment_amount: '620', commitment_true_up_enabled: true });
    // Twice, so that a line is taken out again that never lived.
    const dearer = await reprice(price, '9');
    await sync();
    await reprice(dearer, '2');
    await sync();
    await use('2026-01-15T00:00:00Z', { above: 50, free: 10 });
    await world.on('2026-01-21', () => world.cancel('cancelled'));
    for (const name of RUNNING) {
      previews[name] = summarizeInvoice(await world.preview(name));
      exported[name] = await exportOf(name);
      used[name] = await world.post('/subscriptions/usage', { subscription_id: world.id(`subscription ${name}`) });
    }
    await world.on('2026-02-01');
    await world.finalize();
    await world.on('2026-02-02');
    await use('2026-01-08T00:00:00Z', { lacking: 10, above: 10 });
    await use('2026-01-18T00:00:00Z', { lacking: 10, above: 10 });
    await world.on('2026-03-01');
    await world.finalize();
  });
  after(() => world.stop());

  function use(at: string, used: Record<string, number>): Promise<void> {
    return world.send(Object.entries(used).map(([name, n]) => world.event(name, 'calls', { n, at })));
  }

  /** What the export says of the running month. */
  async function exportOf(external_customer_id: string): Promise<string[]> {
    const range = 'start_time=2026-01-01T00:00:00Z&end_time=2026-02-01T00:00:00Z';
    const answer = await world.api.request('GET', `/events/usage/export?${range}&amounts=true`);
    expect(answer.status, answer.text).to.equal(200);
    const rows = csvRecords(answer.text).filter((row) => row.external_customer_id === external_customer_id);
    return rows.map(({ amount }) => amount!).sort();
  }

  async function reprice({ id }: Price, amount: string) {
    const body = { amount, effective_from: world.now.toISOString() };
    const answer = await world.api.request('PUT', `/prices/${id}`, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  }

  async function change(customer: string, body: object): Promise<void> {
    const { id } = (await world.subscription(customer)).line_items[0]!;
    const answer = await world.api.request('PUT', `/subscriptions/lineitems/${id}`, { body });
    expect(answer.status, answer.text).to.equal(200);
  }

  async function sync(): Promise<void> {
    const { workflow_id } = await world.post(`/plans/${world.id('plan Pro')}/sync/subscriptions`, {});
    const { services, scope } = world.api;
    const attempt = { attempt: 1, is_last: false, clock: () => world.now, signal: AbortSignal.timeout(60_000) };
    const synced = await trySync(services, { ...scope, workflow_id }, { ...attempt, timeout_ms: 60_000 });
    expect(synced).to.equal('completed');
  }

  it('what is lacking is charged once, with the last of them, and what comes late lies within', async () => {
    expect(await world.statements('lacking')).to.deep.equal([
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 200\n' +
        '  calls 2026-01-01..2026-01-11: 69.04 = 69.04\n  calls 2026-01-11..2026-02-01: 0 = 130.96',
      'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 200\n  calls 2026-02-01..2026-03-01: 0 = 200\n' +
        '  calls (late events) 2026-01-01..2026-01-11: 10 = 0\n  calls (late events) 2026-01-11..2026-02-01: 10 = 0',
    ]);
  });

  it('what is above is above all of it, whichever line used it, and what comes late costs what it would have', async () => {
    expect(await world.statements('above')).to.deep.equal([
      // 150, then 50 of 100 within and 50 above.
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 275\n' +
        '  calls 2026-01-01..2026-01-11: 150 = 150\n  calls 2026-01-11..2026-02-01: 50 = 125',
      'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 245\n  calls 2026-02-01..2026-03-01: 0 = 200\n' +
        '  calls (late events) 2026-01-11..2026-02-01: 10 = 30\n  calls (late events) 2026-01-01..2026-01-11: 10 = 15',
    ]);
  });

  it('without a true-up it costs what it costs', async () => {
    expect((await world.statements('free'))[0]).to.include('= 80\n');
  });

  it('where a request changes the line, too, as long as what is committed to stays the same', async () => {
    expect((await world.statements('changed'))[0]).to.equal(
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 200\n' +
        '  calls 2026-01-01..2026-01-11: 69.04 = 69.04\n  calls 2026-01-11..2026-02-01: 0 = 130.96',
    );
    // 10 of 31 days of 310, and 10 above it; 21 of 620.
    expect((await world.statements('restated'))[0]).to.include('= 535\n');
  });

  it('of a period that a cancellation cuts both have the share of the time that there was', async () => {
    // 20 of 31 days of 310.
    expect(await world.statements('cancelled')).to.deep.equal([
      'PRORATION FINALIZED 2026-01-01..2026-01-21 = 200\n' +
        '  calls 2026-01-01..2026-01-11: 150 = 150\n  calls 2026-01-11..2026-01-21: 0 = 50',
    ]);
  });

  it('every door says the same', async () => {
    for (const name of RUNNING) {
      const [first] = await world.invoices(name);
      const amounts = first!.line_items.map(({ amount }) => amount).sort();
      expect(summarizeInvoice(first!)).to.deep.equal(previews[name]);
      expect(exported[name]).to.deep.equal(amounts);
      expect(used[name]!.amount).to.equal(first!.subtotal);
    }
  });

  it('are computed again by whoever checks the invoice', async () => {
    for (const name of ['lacking', 'above']) {
      const { id } = (await world.invoices(name))[0]!;
      const { differences } = await check(await provenBy(world.api, id));
      expect(differences).to.deep.equal([]);
    }
  });
});
