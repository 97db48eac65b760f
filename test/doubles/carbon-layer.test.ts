/**
 * Storms of webhooks that others built and signed (carbon-layer), against our routes, with the scheduler running: repeated, reversed, delayed, and
 * with wrong signatures. Afterwards the invoices and payments are those of the provider's fake.
 */
import { expect } from 'chai';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import { CarbonLayer, type ReportedRecord, type Storm, type StormTarget } from '../support/providers/carbon-layer.ts';
import { ConnectedAccount } from '../support/providers/connected-account.ts';
import { type PaidProvider, RazorpayPaid, StripePaid } from '../support/providers/paid-providers.ts';
import { until } from '../support/until.ts';

/** Nobody listens there. */
const DEAD_ADDRESS = 'http://127.0.0.1:1/';

for (const createPaid of [() => new StripePaid(), () => new RazorpayPaid()]) {
  const there: PaidProvider = createPaid();
  const { provider_type: provider, secrets } = there.double;
  describe(`carbon-layer: storms of ${provider}'s webhooks`, () => {
    let account: ConnectedAccount;
    let scheduler: Scheduler;
    let carbon: CarbonLayer;
    /** Invoices of ours and their copies. */
    const copies = new Map<string, string>();
    let records: readonly ReportedRecord[];
    let first_run: string;

    before(async () => {
      account = await ConnectedAccount.open(there.double);
      carbon = await CarbonLayer.open();
      scheduler = startScheduler(account.api.services, { clock: () => new Date() });
      const invoice_ids = [];
      for (let count = 0; count < 4; count++) invoice_ids.push(await account.newInvoice());
      for (const invoice_id of invoice_ids) {
        const made = await until('the invoice is sent', async () => {
          const mapping = await account.findMapping(invoice_id);
          return mapping?.mapping_state === 'made' && mapping;
        });
        copies.set(invoice_id, made.provider_entity_id);
      }
      records = makeMoney();
    });
    after(async () => {
      await scheduler.stop();
      await carbon.close();
      await account.stop();
    });

    /** One invoice is paid and disputed, one is paid and partly refunded, one is declined and then paid, one is declined. */
    const makeMoney = (): ReportedRecord[] => {
      const [disputed, refunded, retried, declined] = [...copies.values()];
      const payment = there.pay(disputed!);
      const partly = there.pay(refunded!);
      const failed = there.decline(retried!);
      return [
        ...[payment, there.dispute(payment), partly, there.refund(partly, 30)],
        ...[failed, there.pay(retried!), there.decline(declined!)],
        { entity_type: 'payment', state: 'captured', remote_id: there.unknown_id },
      ];
    };
    const send = (storm: Partial<Storm> & Pick<Storm, 'records'>) => {
      account.api.setNow(new Date());
      return carbon.send({ ...target(), ...storm });
    };
    const replay = (run_id: string) => {
      account.api.setNow(new Date());
      return carbon.replay(run_id, target());
    };
    const target = (): StormTarget => {
      const { tenant_id, environment_id } = account.api.scope;
      const url = `${account.api.url}/webhooks/${provider}/${tenant_id}/${environment_id}`;
      return { url, secret: secrets.webhook_secret, provider };
    };
    const listStored = async () => account.api.services.postgres('provider_events').orderBy('event_type');
    const countStates = async () => {
      const states = (await listStored()).map(({ event_state }) => event_state as string);
      return Object.fromEntries(
        [...new Set(states)].map((one) => [one, states.filter((state) => state === one).length]),
      );
    };
    const waitUntilIdle = () =>
      until('no event and no job of the connection waits', async () => {
        const { postgres } = account.api.services;
        const jobs = await postgres('graphile_worker.jobs').whereIn('task_identifier', [
          'push-records',
          'read-provider',
        ]);
        const events = await postgres('provider_events').whereNotNull('next_attempt_at');
        return jobs.length + events.length === 0;
      });
    const listMoney = async () => {
      const ours: string[] = [];
      for (const invoice_id of copies.keys()) {
        const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
        for (const { amount, gateway_payment_id, refunded_amount } of items)
          ours.push(`${gateway_payment_id}: ${amount}, ${refunded_amount} refunded`);
      }
      return ours.toSorted();
    };
    const expectAgreement = async () => {
      expect(await listMoney()).to.deep.equal([...copies.values()].flatMap((id) => there.listMoney(id)).toSorted());
      for (const invoice_id of copies.keys()) {
        const { amount_remaining } = await account.request('GET', `/invoices/${invoice_id}`);
        expect(there.double.listCopies(invoice_id).map(({ remaining }) => remaining)).to.deep.equal([amount_remaining]);
      }
    };

    it('repeated and reversed: each event is stored once, and the money is that of the provider', async () => {
      const { run_id, deliveries } = await send({ records, repeat: 3, order: 'reverse' });
      first_run = run_id;
      expect(deliveries.map(({ status_code }) => status_code)).to.deep.equal(Array(3 * records.length).fill(200));
      expect(new Set(deliveries.map(({ payload }) => payload)).size).to.equal(records.length);
      await waitUntilIdle();
      expect(await countStates()).to.deep.equal({ processed: records.length - 1, ignored: 1 });
      await expectAgreement();
      expect((await listMoney()).length).to.equal(3);
    });

    for (const signature_mode of ['corrupted', 'missing', 'wrong_secret'] as const)
      it(`with a signature that is ${signature_mode}: all are refused, and nothing is stored`, async () => {
        const { deliveries } = await send({ records, repeat: 2, order: 'random', signature_mode });
        expect(deliveries.map(({ status_code }) => status_code)).to.deep.equal(Array(2 * records.length).fill(401));
        expect(await listStored()).to.have.length(records.length);
      });

    it('delayed: what the provider has meanwhile counts, not what the events say', async () => {
      const [, refunded, , declined] = [...copies.values()];
      const { run_id, deliveries } = await send({ records, url: DEAD_ADDRESS, order: 'random' });
      expect(deliveries.map(({ status_code }) => status_code)).to.deep.equal(Array(records.length).fill(null));
      there.pay(declined!);
      there.refund({ ...there.findPaid(refunded!) }, 70);
      const late = await replay(run_id);
      expect(late.deliveries.map(({ status_code }) => status_code)).to.deep.equal(Array(records.length).fill(200));
      await waitUntilIdle();
      expect(await listStored()).to.have.length(2 * records.length);
      await expectAgreement();
      expect((await listMoney()).length).to.equal(4);
    });

    it('again: an event that is stored has no further effect', async () => {
      const before = await listMoney();
      const { deliveries } = await replay(first_run);
      expect(new Set(deliveries.map(({ status_code }) => status_code))).to.deep.equal(new Set([200]));
      await waitUntilIdle();
      expect(await listStored()).to.have.length(2 * records.length);
      expect(await listMoney()).to.deep.equal(before);
    });
  });
}
