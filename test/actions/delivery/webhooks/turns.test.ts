/** Fairness of deliveries: no tenant waits for the backlog of another, or for receivers that do not answer. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { dispatchBatch } from '../../../../actions/delivery/webhooks/dispatch-events.ts';
import { InFlightDeliveries } from '../../../../actions/delivery/webhooks/in-flight.ts';
import type { WebhookServices } from '../../../../actions/delivery/webhooks/send-delivery.ts';
import { type SendDueOptions, sendDue } from '../../../../actions/delivery/webhooks/send-due.ts';
import type { SendOutcome } from '../../../../integrations/webhook-backend.ts';
import { startScheduler } from '../../../../scheduler/main.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { takeDue } from '../../../../storage/queue/due-deliveries.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { startReceiver } from '../../../support/receiver.ts';
import { until } from '../../../support/until.ts';

const NOW = new Date('2026-03-15T12:00:00Z');
const TAKEN: SendOutcome = { url: '', http_status: 200, response_body: '', error: null, duration_ms: 1 };

type Account = { tenant: string; environment?: string; endpoints: number; events: number; records?: number };

describe('turns of webhooks', () => {
  let api: TestApi;
  let services: WebhookServices;
  let receivers: Receivers;
  before(async () => {
    api = await startTestApi({ now: NOW, config: { WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' } });
  });
  beforeEach(async () => {
    const { postgres } = api.services;
    await postgres('system_events').delete();
    await postgres('webhook_endpoints').delete();
    receivers = new Receivers();
    services = {
      postgres,
      sealing: createSealer([]),
      backend: { has_targets: true, send: ({ tenant_id }, target) => receivers.receive(tenant_id, target!.url) },
    };
  });
  after(() => api.stop());

  /** Creates events, and endpoints that subscribe to all of them. */
  async function account({ tenant, environment = `${tenant}-env`, endpoints, events, records = events }: Account) {
    const { postgres } = api.services;
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await postgres.raw(
      `insert into webhook_endpoints (id, tenant_id, environment_id, url, secret, secret_hint)
       select :environment || '-' || n, :tenant, :environment, :environment || '/' || n, :secret, ''
         from generate_series(1, :endpoints::integer) as n on conflict do nothing`,
      { tenant, environment, endpoints, secret },
    );
    await postgres.raw(
      `insert into system_events (id, tenant_id, environment_id, event_name, entity_type, entity_id, payload, created_at)
       select gen_random_uuid(), :tenant, :environment, 'customer.created', 'customer',
              :environment || ' ' || n % :records::integer, '{}', :now
         from generate_series(1, :events::integer) as n`,
      { tenant, environment, events, records, now: NOW },
    );
  }
  const sending = (in_hand: InFlightDeliveries, mayGoOn: () => boolean = () => true): SendDueOptions => ({
    clock: () => NOW,
    which: 'first',
    in_hand,
    max_attempts: 5,
    mayGoOn,
  });
  const send = (in_hand: InFlightDeliveries, mayGoOn?: () => boolean) => sendDue(services, sending(in_hand, mayGoOn));
  const dispatch = (how: Partial<Parameters<typeof dispatchBatch>[1]> = {}) =>
    dispatchBatch(services, { has_targets: true, now: NOW, ...how });
  const deliveriesOf = async (tenant_id: string) =>
    Number((await services.postgres('webhook_deliveries').where({ tenant_id }).count('id as count'))[0]!.count);

  it('a few events are told before the many that another tenant had before, whose receivers hang', async () => {
    await account({ tenant: 'large', endpoints: 5, events: 20_000 });
    await account({ tenant: 'small', endpoints: 1, events: 2 });
    receivers.hang('large');
    const in_hand = new InFlightDeliveries();
    await send(in_hand, () => receivers.begun('small') < 2);
    expect(receivers.begun('large'), 'which are on their way').to.equal(16);
    expect(await deliveriesOf('large'), 'of 100,000').to.be.lessThan(3_000);
    receivers.goOn();
    await in_hand.end();
  });

  it('a round is as many events of each environment as have their part of a thousand deliveries, and one at least', async () => {
    await account({ tenant: 'one', endpoints: 50, events: 100 });
    await account({ tenant: 'two', endpoints: 2, events: 300 });
    await account({ tenant: 'none', endpoints: 0, events: 300 });
    expect((await dispatch()).dispatched).to.equal(6 + 166 + 300);
    expect([await deliveriesOf('one'), await deliveriesOf('two')]).to.deep.equal([6 * 50, 166 * 2]);
    for (let n = 0; n < 98; n++)
      await account({ tenant: 'many', environment: `many-${n}`, endpoints: 50, events: n < 60 ? 1 : 0 });
    expect((await dispatch()).dispatched, 'sixty-two with events').to.equal(60 + 1 + 8);
  });

  it('rounds go on behind the environments of the one before, however many there are', async () => {
    const environments = Array.from({ length: 103 }, (_, n) => `env-${String(n).padStart(3, '0')}`);
    for (const environment of environments) await account({ tenant: 'many', environment, endpoints: 1, events: 20 });
    const first = await dispatch();
    expect(first).to.deep.include({ dispatched: 100 * 10 });
    expect(first.after?.environment_id).to.equal('env-099');
    expect(await dispatch({ after: first.after })).to.deep.equal({ dispatched: 3 * 20, after: null });
  });

  it('whoever makes deliveries at the same time makes none of a record before an earlier one is there', async () => {
    await account({ tenant: 'acme', endpoints: 1, events: 1 });
    await account({ tenant: 'other', endpoints: 1, events: 1 });
    const { postgres } = services;
    await postgres.transaction(async (transaction) => {
      await dispatchBatch({ postgres: transaction }, { has_targets: true, now: NOW });
      await account({ tenant: 'acme', endpoints: 1, events: 1 });
      await account({ tenant: 'third', endpoints: 1, events: 1 });
      expect((await dispatch()).dispatched, 'of the third alone').to.equal(1);
      expect(await deliveriesOf('third')).to.equal(1);
    });
    expect((await dispatch()).dispatched).to.equal(1);
    expect(await deliveriesOf('acme')).to.equal(2);
  });

  it('an event that is locked is left for later, and what happened to its record after it', async () => {
    await account({ tenant: 'acme', endpoints: 1, events: 6, records: 2 });
    const { postgres } = services;
    await postgres.transaction(async (transaction) => {
      await transaction('system_events').where('entity_id', 'acme-env 1').orderBy('sequence').first('id').forUpdate();
      expect((await dispatch()).dispatched, 'those of the other record').to.equal(3);
      expect((await dispatch()).dispatched).to.equal(0);
    });
    expect((await dispatch()).dispatched).to.equal(3);
  });

  it('several who send at once tell each event once, and those of a record in their order', async () => {
    await account({ tenant: 'acme', endpoints: 2, events: 160, records: 20 });
    await account({ tenant: 'other', endpoints: 2, events: 12, records: 3 });
    const told = new Map<string, string[]>();
    const backend: WebhookServices['backend'] = {
      has_targets: true,
      async send({ id }, target) {
        told.set(target!.url, [...(told.get(target!.url) ?? []), id]);
        return TAKEN;
      },
    };
    const runs = Array.from({ length: 3 }, () => sendDue({ ...services, backend }, sending(new InFlightDeliveries())));
    const reports = await Promise.all(runs);
    expect(reports.reduce((sum, { dispatched }) => sum + dispatched, 0)).to.equal(172);
    expect(reports.reduce((sum, { delivered }) => sum + delivered, 0)).to.equal(344);
    const events = await services.postgres('system_events').orderBy('sequence').select('id', 'entity_id');
    const records = new Map(events.map(({ id, entity_id }) => [id, entity_id]));
    for (const [url, ids] of told) {
      const tenant = url.split('/')[0]!;
      for (const record of new Set(records.values())) {
        if (!record.startsWith(tenant)) continue;
        const happened = events.filter(({ entity_id }) => entity_id === record).map(({ id }) => id);
        expect(
          ids.filter((id) => records.get(id) === record),
          `${url} ${record}`,
        ).to.deep.equal(happened);
      }
    }
  });

  it('of many who look at one moment each delivery is taken by one', async () => {
    for (const tenant of ['a', 'b', 'c', 'd']) await account({ tenant, endpoints: 2, events: 8 });
    await dispatch();
    const { postgres } = services;
    const limits = { limit: 64, limit_each: 8, limit_environment: 16, limit_tenant: 32 };
    const wanted = { now: NOW, which: 'first', in_hand: {}, served: {}, has_targets: true, ...limits } as const;
    for (let moment = 0; moment < 20; moment++) {
      const lookers = Array.from({ length: 8 }, (_, n) => takeDue(postgres, { ...wanted, lease: `looker ${n}` }));
      const ids = (await Promise.all(lookers)).flat().map(({ id }) => id);
      expect(ids.length, `moment ${moment}`).to.equal(new Set(ids).size);
      await postgres('webhook_deliveries').update({ lease: null, leased_until: null });
    }
  });

  it('a run that may not go on leaves what is on its way to the next, which counts it and reports it', async () => {
    await account({ tenant: 'acme', endpoints: 1, events: 5 });
    receivers.hang('acme');
    const in_hand = new InFlightDeliveries();
    const first = await send(in_hand, () => receivers.begun('acme') === 0);
    expect(first).to.deep.equal({ dispatched: 5, delivered: 0, failed: 0, given_up: 0 });
    await until('they are on their way', async () => receivers.begun('acme') === 5);
    await account({ tenant: 'acme', endpoints: 1, events: 20 });
    await account({ tenant: 'other', endpoints: 1, events: 1 });
    const second = await send(in_hand, () => receivers.begun('other') === 0);
    expect(second).to.deep.include({ dispatched: 21 });
    await until('they are on their way', async () => receivers.begun('acme') >= 8);
    expect(receivers.begun('acme'), 'of one endpoint').to.equal(8);
    receivers.goOn();
    const third = await send(in_hand);
    expect(second.delivered + third.delivered).to.equal(26);
    expect(receivers.most('acme')).to.equal(8);
  });

  it('what fails after its run is said by the next, and what has ended meanwhile by the one after that', async () => {
    await account({ tenant: 'acme', endpoints: 1, events: 2 });
    receivers.hang('acme');
    const in_hand = new InFlightDeliveries();
    await send(in_hand, () => receivers.begun('acme') === 0);
    await until('they are on their way', async () => receivers.begun('acme') === 2);
    receivers.failWith('acme', new Error('this one alone'));
    receivers.goOn();
    let failure: unknown;
    await send(in_hand).catch((error: unknown) => (failure = error));
    expect((failure as Error).message).to.equal('this one alone');
    expect(await send(in_hand)).to.deep.include({ delivered: 1 });
  });

  it('four tenants whose receivers hang keep no fifth waiting', async () => {
    for (const tenant of ['a', 'b', 'c', 'd']) {
      await account({ tenant, endpoints: 2, events: 20 });
      receivers.hang(tenant);
    }
    const all = () => ['a', 'b', 'c', 'd'].reduce((sum, tenant) => sum + receivers.begun(tenant), 0);
    const in_hand = new InFlightDeliveries();
    await send(in_hand, () => all() < 64);
    await account({ tenant: 'fifth', endpoints: 1, events: 1 });
    // Without a free slot for it this loop would not end: no other delivery completes before the fifth begins.
    await send(in_hand, () => receivers.begun('fifth') === 0);
    expect(all()).to.equal(64);
    receivers.goOn();
    await in_hand.end();
  });

  it('of one tenant thirty-two are on their way, however many environments it has', async () => {
    for (const environment of ['one', 'two', 'three'])
      await account({ tenant: 'acme', environment, endpoints: 3, events: 20 });
    receivers.hang('acme');
    const in_hand = new InFlightDeliveries();
    let looks = 0;
    await send(in_hand, () => looks++ < 12);
    await until('they are on their way', async () => receivers.begun('acme') >= 32);
    receivers.goOn();
    await send(in_hand);
    expect(receivers.most('acme')).to.equal(32);
    expect(receivers.begun('acme')).to.equal(180);
  });

  it('what was asked for after a run began is told by that run', async () => {
    await account({ tenant: 'acme', endpoints: 1, events: 1 });
    await dispatch({ now: new Date(NOW.getTime() + 20_000) });
    expect(await send(new InFlightDeliveries())).to.deep.include({ delivered: 1 });
  });

  it('a scheduler that stops begins nothing more, and waits for what is on its way', async () => {
    const receiver = await startReceiver();
    await api.request('POST', '/webhooks/endpoints', { body: { url: `${receiver.url}/hooks` } });
    const waiting: ServerResponse[] = [];
    receiver.answerWith((_, response) => {
      waiting.push(response);
      return undefined;
    });
    const scheduler = startScheduler(api.services, { clock: () => NOW });
    try {
      for (let n = 0; n < 20; n++) await api.request('POST', '/customers', { body: { external_id: `c-${n}` } });
      await until('as many as may be are on their way', async () => receiver.received.length === 8);
    } finally {
      const stopped = scheduler.stop();
      receiver.answerWith(() => 200);
      setTimeout(() => waiting.forEach((response) => void response.writeHead(200).end()), 500);
      await stopped;
    }
    const leased = await services.postgres('webhook_deliveries').whereNotNull('lease').select('id');
    const delivered = await services.postgres('webhook_deliveries').where('delivery_status', 'delivered').select('id');
    await receiver.stop();
    expect(leased, 'on their way').to.deep.equal([]);
    expect([delivered.length, receiver.received.length], 'of twenty').to.deep.equal([8, 8]);
  });
});

/** Receivers that answer at once, or only after their release. */
class Receivers {
  readonly #hanging = new Set<string>();
  readonly #begun = new Map<string, number>();
  readonly #inHand = new Map<string, number>();
  readonly #most = new Map<string, number>();
  readonly #failures = new Map<string, Error>();
  #goOn!: () => void;
  readonly #released = new Promise<void>((resolve) => {
    this.#goOn = resolve;
  });

  hang(tenant: string): void {
    this.#hanging.add(tenant);
  }

  goOn(): void {
    this.#goOn();
  }

  failWith(tenant: string, failure: Error): void {
    this.#failures.set(tenant, failure);
  }

  begun(tenant: string): number {
    return this.#begun.get(tenant) ?? 0;
  }

  /** Returns the maximum number of concurrent requests of a tenant. */
  most(tenant: string): number {
    return this.#most.get(tenant) ?? 0;
  }

  async receive(tenant: string, url: string): Promise<SendOutcome> {
    const inHand = (this.#inHand.get(tenant) ?? 0) + 1;
    this.#inHand.set(tenant, inHand);
    this.#begun.set(tenant, this.begun(tenant) + 1);
    this.#most.set(tenant, Math.max(this.most(tenant), inHand));
    if (this.#hanging.has(tenant)) await this.#released;
    this.#inHand.set(tenant, this.#inHand.get(tenant)! - 1);
    const failure = this.#failures.get(tenant);
    this.#failures.delete(tenant);
    if (failure) throw failure;
    return { ...TAKEN, url };
  }
}
