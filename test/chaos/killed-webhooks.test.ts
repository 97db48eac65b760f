/**
 * kill -9 of the process that receives webhooks of a provider, and of the scheduler that processes their events, at each step. After the
 * restart each event has its effect once and is marked as processed, and both sides agree (docs/integrations/README.md, "Webhooks of providers").
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { findInvoiceFaults } from '../../storage/audit/invoices.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import { holdWrite, type WritePoint } from '../support/held-write.ts';
import { startHoldingProxy } from '../support/holding-proxy.ts';
import { ConnectedAccount } from '../support/providers/connected-account.ts';
import type { SignedWebhook } from '../support/providers/provider-double.ts';
import { StripeDouble } from '../support/providers/stripe-double.ts';
import { completeSession, completeSetup } from '../support/providers/stripe-fake-payments.ts';
import { QUICK, startApiProcess, startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';

const STORED: WritePoint = { table: 'provider_events', on: 'insert' };
const MARKED: WritePoint = { table: 'provider_events', on: 'update', when: "new.event_state = 'processed'" };
const JOBS = 'graphile_worker._private_jobs';
const JOB_ADDED: WritePoint = { table: JOBS, on: 'insert', when: "new.key like 'read-provider:%'" };
const JOB_ENDED: WritePoint = { table: JOBS, on: 'delete', when: "old.key like 'read-provider:%'" };

describe('processes that are killed while they process a webhook', () => {
  const there = new StripeDouble();
  let account: ConnectedAccount;
  before(async () => {
    account = await ConnectedAccount.open(there);
  });
  beforeEach(() => {
    // Signatures expire after five minutes.
    account.now = new Date();
    account.api.setNow(account.now);
    there.takeWebhooks();
  });
  after(() => account.stop());

  const postgres = () => account.api.services.postgres;
  const countEvents = async () => Number((await postgres()('provider_events').count())[0]!['count']);
  const isPaid = async (invoice_id: string) => (await account.showPaid(invoice_id)) === 'SUCCEEDED 100';

  /** A copy at the provider has been paid, and its webhooks are on their way. */
  async function newPaid() {
    const { invoice_id, copy_id } = await account.newPushed();
    there.takeWebhooks();
    return { invoice_id, payment_there: there.payCopy(copy_id) };
  }

  async function expectPaidOnce({ invoice_id, payment_there }: Awaited<ReturnType<typeof newPaid>>): Promise<void> {
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${payment_there}`]);
    expect(account.showCopies(invoice_id)).to.deep.equal(['paid 0']);
    expect(await account.listSystemEvents('invoice.update.payment', invoice_id)).to.have.length(1);
    expect(await findInvoiceFaults(postgres(), { invoices: null, limit: 5 })).to.deep.equal([]);
  }

  async function kill(child: ChildProcess): Promise<void> {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Starts a scheduler and stops it when no event and no job is left. */
  async function restart(): Promise<void> {
    const now = new Date();
    const scheduler = startScheduler(account.api.services, { clock: () => now, liveness: QUICK });
    try {
      await until('all events have ended', async () => {
        const left = await postgres()('provider_events').where({ event_state: 'received' });
        const jobs = await postgres()('graphile_worker.jobs').where('key', `read-provider:${account.connection_id}`);
        return left.length + jobs.length === 0;
      });
    } finally {
      await scheduler.stop();
    }
    const ends = await postgres()('provider_events').whereNotIn('event_state', ['processed', 'ignored']);
    expect(ends).to.deep.equal([]);
  }

  describe('the process that receives it', () => {
    const post = (url: string, { headers, body }: SignedWebhook) => {
      const { tenant_id, environment_id } = account.api.scope;
      const path = `${url}/v1/webhooks/stripe/${tenant_id}/${environment_id}`;
      return account.api.request('POST', path, { key: null, headers, body }).catch((error: Error) => error);
    };

    /** The provider has no answer to the first webhook, so it delivers it again. */
    async function deliverAgain(webhooks: readonly SignedWebhook[]): Promise<void> {
      for (const webhook of webhooks) expect(await account.deliver(webhook)).to.equal(200);
      await restart();
      const stored = await postgres()('provider_events').groupBy('provider_event_id').havingRaw('count(*) > 1').count();
      expect(stored).to.deep.equal([]);
    }

    for (const [where, point] of [
      ['the record is being written', STORED],
      ['its job is being added', JOB_ADDED],
    ] as const)
      it(`when ${where}: nothing is stored`, async () => {
        const paid = await newPaid();
        const webhooks = there.takeWebhooks();
        const count = await countEvents();
        const { child, url } = await startApiProcess(account.api.services, new Date());
        const held = await holdWrite(postgres(), point);
        const answer = post(url, webhooks[0]!);
        try {
          await held.reached();
        } finally {
          await kill(child);
          await held.release();
        }
        expect(await answer).to.be.instanceOf(Error);
        expect(await countEvents()).to.equal(count);
        await deliverAgain(webhooks);
        await expectPaidOnce(paid);
      });

    it('when record and job are committed and the answer is not sent: the second delivery stores nothing', async () => {
      const paid = await newPaid();
      const webhooks = there.takeWebhooks();
      const count = await countEvents();
      const proxy = await startHoldingProxy(readUrl(postgres()));
      const proxied = connectPostgres(proxy.url);
      try {
        const { child, url } = await startApiProcess({ ...account.api.services, postgres: proxied }, new Date());
        const committing = proxy.hold('COMMIT');
        const answer = post(url, webhooks[0]!);
        try {
          await committing;
          await until('the record is committed', async () => (await countEvents()) === count + 1);
        } finally {
          await kill(child);
        }
        expect(await answer).to.be.instanceOf(Error);
      } finally {
        await proxied.destroy();
        await proxy.close();
      }
      await deliverAgain(webhooks);
      await expectPaidOnce(paid);
    });
  });

  describe('the scheduler that processes it', () => {
    /** Kills a scheduler at the point. `isDone` tells whether the effect is committed then. */
    async function dieAt(point: WritePoint, isDone: () => Promise<boolean>): Promise<boolean> {
      const held = await holdWrite(postgres(), point);
      const child = await startSchedulerProcess(account.api.services, new Date());
      try {
        await held.reached();
        return await isDone();
      } finally {
        await kill(child);
        await held.release();
      }
    }

    it('when it reads the invoice from the provider', async () => {
      const paid = await newPaid();
      await account.deliverAll();
      const { arrived, release } = there.fake.hold(/^GET invoices/);
      const child = await startSchedulerProcess(account.api.services, new Date());
      try {
        await arrived;
      } finally {
        await kill(child);
        release();
      }
      expect(await isPaid(paid.invoice_id)).to.equal(false);
      await restart();
      await expectPaidOnce(paid);
    });

    for (const { where, point, is_done } of [
      { where: 'the payment is being added', point: { table: 'payments', on: 'insert' }, is_done: false },
      { where: 'the invoice is being paid', point: { table: 'invoices', on: 'update' }, is_done: false },
      { where: 'the event is being marked as processed', point: MARKED, is_done: false },
      { where: 'the effect is committed and the job is ending', point: JOB_ENDED, is_done: true },
    ] as const)
      it(`when ${where}`, async () => {
        const paid = await newPaid();
        await account.deliverAll();
        expect(await dieAt(point, () => isPaid(paid.invoice_id))).to.equal(is_done);
        await restart();
        await expectPaidOnce(paid);
      });

    // The payment and the payment method have transactions of their own, before the one that marks the event.
    it('when a requested payment is booked and the event is being marked', async () => {
      const invoice_id = await account.newInvoice();
      const link = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'PAYMENT_LINK' };
      const body = { ...link, payment_gateway: 'stripe', amount: '100', currency: 'usd' };
      const page = await account.request('POST', '/payments', body);
      const { id } = completeSession(there.fake.book, page['gateway_payment_id']!, 'pm_card_visa')!;
      await account.deliverAll();
      expect(await dieAt(MARKED, () => isPaid(invoice_id))).to.equal(true);
      await restart();
      expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${id}`]);
      expect(await account.listSystemEvents('invoice.update.payment', invoice_id)).to.have.length(1);
    });

    it('when a payment method is saved and the event is being marked', async () => {
      const customer_id = await account.newCustomer();
      const path = `/payments/customers/${customer_id}/setup/intent` as const;
      const { setup_intent_id } = await account.request('POST', path, { provider: 'stripe', set_default: true });
      completeSetup(there.fake.book, setup_intent_id!, 'pm_card_visa');
      await account.deliverAll();
      const listMethods = () => postgres()('payment_methods').where({ customer_id });
      expect(await dieAt(MARKED, async () => (await listMethods()).length === 1)).to.equal(true);
      await restart();
      expect((await listMethods()).map(({ status, is_default }) => [status, is_default])).to.deep.equal([
        ['published', true],
      ]);
    });

    it('when a dispute is being reported', async () => {
      const { invoice_id, payment_there } = await newPaid();
      await account.deliverAll();
      await account.read();
      expect(await isPaid(invoice_id)).to.equal(true);
      there.fake.book.disputePayment(payment_there);
      await account.deliverAll();
      const [payment] = await postgres()('payments').where({ destination_id: invoice_id });
      const listReports = () => account.listSystemEvents('payment.disputed', payment.id);
      const point = { table: 'system_events', on: 'insert', when: "new.event_name = 'payment.disputed'" } as const;
      expect(await dieAt(point, async () => (await listReports()).length > 0)).to.equal(false);
      await restart();
      expect(await listReports()).to.have.length(1);
    });
  });
});
