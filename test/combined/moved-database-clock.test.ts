/**
 * The clock of the database is moved while records are sent to a provider and read from it, and money is charged: nothing is created or booked
 * twice, nothing is lost, and pauses end (docs/rules/payments.md, "Never twice"; docs/integrations/README.md, "Sending by itself").
 */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { computePauseSeconds } from '../../core/platform/integration/pushed-events.ts';
import { listCapable } from '../../integrations/find-capability.ts';
import { enqueuePushesJob } from '../../scheduler/jobs/enqueue-connections.ts';
import { findInvoiceFaults } from '../../storage/audit/invoices.ts';
import { listConnectionsToPush } from '../../storage/queue/pending-pushes.ts';
import { moveDatabaseClock } from '../support/moved-clock.ts';
import { ConnectedAccount } from '../support/providers/connected-account.ts';
import { PROVIDER_DOUBLES } from '../support/providers/doubles.ts';
import { StripeDouble } from '../support/providers/stripe-double.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PAUSE_SECONDS = computePauseSeconds(0, null);

/** Difference of the database's clock to the true time when a key is created, and a day later. */
const WRONG_CLOCKS = [
  { name: 'moved back an hour after the call', at_call_ms: 0, later_ms: -HOUR_MS },
  { name: 'moved back 20 hours after the call', at_call_ms: 0, later_ms: -20 * HOUR_MS },
  { name: 'moved back two days after the call', at_call_ms: 0, later_ms: -2 * DAY_MS },
  { name: 'a day ahead during the call', at_call_ms: DAY_MS, later_ms: 0 },
  { name: 'moved forward a day after the call', at_call_ms: 0, later_ms: DAY_MS },
] as const;

for (const [name, { exchanges }] of Object.entries(listCapable('account')))
  describe(`${name}: a moved clock of the database`, () => {
    const there = PROVIDER_DOUBLES[name]!();
    let account: ConnectedAccount;
    let setDatabaseClock: (instant: Date) => Promise<void>;

    /** The true time passes for this service; the clock of the database differs from it. */
    const moveClock = (by_ms: number) => setDatabaseClock(new Date(account.now.getTime() + by_ms));
    const postgres = () => account.api.services.postgres;
    const listJobs = async (task: string) => {
      const now = postgres().raw('clock_timestamp() as now');
      return postgres()('graphile_worker.jobs').where('key', `${task}:${account.connection_id}`).select('run_at', now);
    };

    before(async () => {
      account = await ConnectedAccount.open(there);
      setDatabaseClock = await moveDatabaseClock(postgres());
    });
    beforeEach(async () => {
      account.now = new Date();
      account.api.setNow(account.now);
      await moveClock(0);
      there.fake.clearDisturbances();
      there.takeWebhooks();
    });
    afterEach(async () => {
      expect(await findInvoiceFaults(postgres(), { invoices: null, limit: 5 })).to.deep.equal([]);
    });
    after(() => account.stop());

    for (const [jump, by_ms] of [
      ['back an hour', -HOUR_MS],
      ['forward a day', DAY_MS],
    ] as const)
      it(`work that has begun has its effect once: ${jump}`, async () => {
        const pulled = await account.newPushed();
        const paid = await account.newPushed();
        there.takeWebhooks();
        const payment_there = there.payCopy(paid.copy_id);
        await account.deliverAll();
        const unreported = there.payCopy(pulled.copy_id);
        const pull = { entity_type: 'invoice', entity_id: pulled.invoice_id, method: 'pull' };
        await account.request('POST', '/integrations/sync', pull);
        const sent = await account.newInvoice();
        there.disturb('invoice', 'lost_answer');
        expect((await account.push()).ended).to.equal('paused');

        await moveClock(by_ms);
        account.passSeconds(PAUSE_SECONDS + 1);
        expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['done', 'done']);
        await account.read();

        expect(account.showCopies(sent)).to.deep.equal(['open 100']);
        expect(await account.listPayments(paid.invoice_id)).to.deep.equal([`100 ${payment_there}`]);
        expect(await account.listPayments(pulled.invoice_id)).to.deep.equal([`100 ${unreported}`]);
        const [event] = await postgres()('provider_events').where({ event_state: 'received' });
        expect(event).to.equal(undefined);
        expect(await account.findConnection()).to.include({ paused_until: null, pause_count: 0 });
      });

    for (const { name: when, at_call_ms, later_ms } of WRONG_CLOCKS)
      it(`a key that the provider has forgotten creates nothing: ${when}`, async () => {
        const customer_id = await account.newCustomer();
        const invoice_id = await account.newInvoice(customer_id);
        await moveClock(at_call_ms);
        there.disturb('invoice', 'lost_answer');
        expect((await account.push()).ended).to.equal('paused');
        account.passSeconds(DAY_MS / 1_000 + 60);
        there.forgetKeys();
        await moveClock(later_ms);
        expect((await account.push()).ended).to.equal('done');
        expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
        expect(there.listCustomers(customer_id)).to.have.length(exchanges.includes('customer') ? 1 : 0);
      });

    for (const by_ms of [-HOUR_MS, DAY_MS])
      it(`the job that ends a pause is due after the pause: ${by_ms / HOUR_MS} hours`, async () => {
        await moveClock(by_ms);
        await account.newInvoice();
        there.disturb('invoice', 'lost_answer');
        await account.dispatch();
        const [dispatched] = await listJobs('push-records');
        expect((await account.push()).ended).to.equal('paused');
        const [delayed] = await listJobs('push-records');
        const toMs = (instant: string) => new Date(instant).getTime();
        expect(toMs(delayed.run_at)).to.be.greaterThan(toMs(dispatched.now));
        expect(toMs(delayed.run_at)).to.be.at.most(toMs(delayed.now) + PAUSE_SECONDS * 1_000);
        account.passSeconds(PAUSE_SECONDS + 1);
        expect((await account.push()).ended).to.equal('done');
      });

    it('a job that ends a pause is enqueued again if the clock is moved back', async () => {
      const listIds = async () => (await listConnectionsToPush(postgres(), account.now)).map(({ id }) => id);
      await account.newInvoice();
      there.disturb('invoice', 'lost_answer');
      expect((await account.push()).ended).to.equal('paused');
      expect(await listIds()).to.deep.equal([]);
      await moveClock(-HOUR_MS);
      account.passSeconds(PAUSE_SECONDS + 1);
      expect(await listIds()).to.deep.equal([account.connection_id]);
      await enqueuePushesJob(account.api.services, 60).run(account.now);
      expect(await listIds()).to.deep.equal([]);
      const [job] = await listJobs('push-records');
      expect(new Date(job.run_at) <= new Date(job.now)).to.equal(true);
      expect((await account.push()).ended).to.equal('done');
      expect(await listIds()).to.deep.equal([]);
    });

    if (there instanceof StripeDouble)
      for (const by_ms of [-HOUR_MS, DAY_MS])
        it(`a charge whose answer was lost is made once: ${by_ms / HOUR_MS} hours`, async () => {
          const customer_id = await account.newCustomer();
          const method = { payment_gateway: name, gateway_payment_method_id: 'pm_card_visa' };
          await account.request('POST', `/payments/customers/${customer_id}/methods`, method);
          const invoice_id = await account.newInvoice(customer_id);
          there.fake.disturb(/POST payment_intents$/, 'lost_answer');
          const charge = { payment_method_type: 'CARD', payment_gateway: name, payment_method_id: 'pm_card_visa' };
          const destination = { destination_type: 'INVOICE', destination_id: invoice_id };
          const body = { ...destination, ...charge, amount: '100', currency: 'usd' };
          const { id } = await account.request('POST', '/payments', body);
          await moveClock(by_ms);
          account.passSeconds(2 * PAUSE_SECONDS);
          await processDuePayments(account.api.services, { now: account.now });
          expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
          const intents = there.fake.book
            .list('payment_intent')
            .filter((one) => one.metadata['farthing_payment_id'] === id);
          expect(intents).to.have.length(1);
        });
  });
