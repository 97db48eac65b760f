/**
 * Balances and usage of running periods as they are kept up while events arrive, against the same gathered anew from the stores:
 * whatever happens in between, they are the same (docs/decisions/0007-cached-answers.md).
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { register } from 'prom-client';
import { loadRealTimeBalance } from '../../actions/lifecycle/wallets/real-time-balance.ts';
import { buildApp } from '../../api/app.ts';
import { routes } from '../../api/resources.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import type { SomeAnswer, WalletBalance } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const CUSTOMERS = ['acme', 'bolt', 'core'];

for (const beside of [false, true])
  describe(`running charges ${beside ? 'beside the pipeline' : 'in its process'}`, () => {
    let world: World;
    /** The same interface where nothing is kept. */
    let uncached: Server;

    beforeEach(async () => {
      world = await startWorld({ usage_cache: new UsageCache({ isFed: beside }), beside });
      uncached = makeHttpServer(buildApp({ ...world.api.services, usage_cache: undefined }, routes)).listen(0);
    });
    afterEach(async () => {
      uncached.closeAllConnections();
      uncached.close();
      await world.stop();
    });

    it('are the preview’s, whatever happens', async () => {
      await begin();
      const before = await answers();
      const deeds = fc.array(
        fc.record({
          deed: fc.constantFrom(...Object.keys(DEEDS)),
          who: fc.constantFrom(...CUSTOMERS),
          n: fc.integer({ min: 1, max: 90 }),
        }),
        {
          minLength: 6,
          maxLength: 16,
        },
      );
      for (const customer of CUSTOMERS) await same(customer, 'at the beginning');
      // What chance does below may be all of another kind.
      for (const n of [1, 2, 3, 4]) {
        await DEEDS.calls!('acme', n);
        await same('acme', `after calls ${n}`);
      }
      await fc.assert(
        fc.asyncProperty(deeds, async (steps) => {
          for (const { deed, who, n } of steps) {
            await DEEDS[deed]!(who, n);
            // At one time: what has to be gathered anew is gathered together.
            await Promise.all(CUSTOMERS.map((customer) => same(customer, `after ${deed} ${who} ${n}`)));
          }
        }),
        { numRuns: samples(2), endOnFailure: true },
      );
      const { kept, arrived } = await answers();
      expect(kept! - before.kept!, 'answers that were kept').to.be.above(10);
      expect(arrived! - before.arrived!, 'answers that were made of what arrived').to.be.above(2);
    }).timeout(300_000);

    it('of who pays for several customers take none of them for another', async () => {
      await begin();
      await world.customer('head office');
      const purse = { external_customer_id: 'head office', currency: 'usd', initial_credits_to_load: '500' };
      await world.post('/wallets', purse);
      await world.on('2026-01-04');
      for (const branch of ['north', 'south'])
        await world.subscribe(branch, 'Pro', { inheritance: { invoicing_customer_external_id: 'head office' } });
      const balance = async () => {
        const { services, scope } = world.api;
        const wallet = await WalletModel.fetch(scope, (await walletOf('head office'))!.id, {
          database: services.postgres,
        });
        const uncached_balance = await loadRealTimeBalance({ ...services, usage_cache: undefined }, wallet, world.now);
        const told = await world.get(`/wallets/${wallet.id}/balance/real-time`);
        expect(told.real_time_balance).to.equal(uncached_balance.real_time_balance);
      };
      await used('north', 'calls', { n: 90 });
      for (const [branch, n] of [
        ['south', 5],
        ['south', 6],
        ['north', 7],
        ['south', 8],
      ] as const) {
        await balance();
        await used(branch, 'calls', { n });
      }
      await balance();
    });

    it('of who takes part in another’s subscription are those of all who do', async () => {
      await begin();
      for (const external_id of ['north', 'south']) await world.customer(external_id);
      const path = (who: string) => `/customers/usage?customer_lookup_key=${who}` as const;
      const told = async (who: string) => {
        const usages = await world.get(path(who));
        expect(withoutAsOf(usages), who).to.deep.equal(withoutAsOf(await anewOf(path(who))));
        const entitled = `/customers/${usages.customer_id}/entitlements`;
        expect(await world.get(entitled), who).to.deep.equal(await anewOf(entitled));
        return usages.features.map(({ current_usage }) => Number(current_usage));
      };
      expect(await told('north')).to.deep.equal([]);
      const before = await told('acme');
      const modify = (inheritance_params: object) =>
        world.post(`/subscriptions/${world.id('subscription acme')}/modify/execute`, {
          type: 'inheritance',
          inheritance_params,
        });
      await world.on('2026-01-05');
      await modify({ action: 'add', external_customer_ids_to_inherit_subscription: ['north', 'south'] });
      for (const n of [3, 4]) {
        await used('south', 'calls', { n });
        expect(await told('north')).to.deep.equal(await told('acme'));
      }
      const after = await told('acme');
      expect(after.map((one: number, index: number) => one - before[index]!)).to.include(7);
      await world.on('2026-01-06');
      await modify({ action: 'remove', external_customer_ids_to_remove: ['north'] });
      expect(await told('north')).to.deep.equal([]);
      expect(await told('south')).to.deep.equal(after);
    });

    it('of what is granted bit by bit are made anew where usage arrives or a grant ends, and are the same', async () => {
      const { id: meter_id } = await world.meter('bits');
      await world.plan('Bits', [usage('bits', '0.3')]);
      const { id: feature_id } = await world.post('/features', { name: 'Bits', type: 'metered', meter_id });
      await world.post('/entitlements', {
        plan_id: world.id('plan Bits'),
        feature_id,
        feature_type: 'metered',
        grant_measure: 'quantity',
        grant_quota: '30',
        grant_duration_value: 5,
        grant_duration_unit: 'hour',
      });
      await world.on('2026-01-04', () => world.subscribe('bob', 'Bits'));
      await world.post('/wallets', { external_customer_id: 'bob', currency: 'usd', initial_credits_to_load: '100' });
      const told: string[] = [];
      for (const [hour, n] of [
        [1, 25],
        [4, 25],
        [6, 0],
        [7, 25],
        [9, 25],
      ] as const) {
        world.at(`2026-01-04T0${hour}:00:00Z`);
        if (n > 0) await used('bob', 'bits', { n });
        await same('bob', `at ${hour}`);
        // A second time, as it was kept.
        await same('bob', `at ${hour} again`);
        const { features } = await world.get(`/customers/usage?customer_id=${world.id('customer bob')}`);
        const { real_time_balance } = await world.get(`/wallets/${(await walletOf('bob'))!.id}/balance/real-time`);
        told.push([features[0]!.current_usage, features[0]!.next_usage_reset_at, real_time_balance].join(' '));
      }
      const until = (hour: string) => `2026-01-04T${hour}:00:00Z`;
      // 20 of the first five hours are charged, and 20 of the second.
      expect(told).to.deep.equal([
        `25 ${until('06')} 100`,
        `50 ${until('06')} 94`,
        '0 2026-02-04T00:00:00Z 94',
        `25 ${until('12')} 94`,
        `50 ${until('12')} 88`,
      ]);
    });

    it('of many who are asked at one time are each its own, and who fails among them fails alone', async () => {
      await begin();
      const paths = new Map<string, string[]>();
      for (const who of CUSTOMERS) {
        const id = world.id(`customer ${who}`);
        paths.set(who, [
          `/wallets/${(await walletOf(who))!.id}/balance/real-time`,
          `/customers/usage?customer_id=${id}`,
          `/customers/${id}/entitlements`,
        ]);
      }
      const all = () => [...paths.values()].flat();
      const gathered = async (asked: readonly string[]) => {
        const before = (await answers()).gathered!;
        const told = await Promise.all(asked.map((path) => world.get(path)));
        return { told, gathered: (await answers()).gathered! - before };
      };
      const nobody = all().map((path) => path.replace(/(cust|wallet)_\w+/, '$1_00000000000000000000000000'));
      const ask = async <Path extends string>(path: Path) => (await world.api.request('GET', path)).status;
      const first = await Promise.all([...nobody.map(ask), ...all().map(ask)]);
      expect(first).to.deep.equal([...nobody.map(() => 404), ...all().map(() => 200)]);
      for (const who of CUSTOMERS) await same(who, 'asked with all others');
      expect((await gathered(all())).gathered, 'all is kept').to.equal(0);
      for (const who of CUSTOMERS) {
        await DEEDS.debit!(who, 1);
        const others = CUSTOMERS.filter((one) => one !== who).flatMap((one) => paths.get(one)!);
        expect((await gathered(others)).gathered, `a debit of ${who} is nobody else’s`).to.equal(0);
        expect((await gathered(paths.get(who)!)).gathered, `and is ${who}’s`).to.be.above(0);
        await same(who, 'after its debit');
      }
      await DEEDS['more is free']!('acme', 7);
      expect((await gathered(all())).gathered, 'what all have is everybody’s').to.be.at.least(2 * CUSTOMERS.length);
      for (const who of CUSTOMERS) await same(who, 'after the plan grants more');
    }).timeout(60_000);

    const begin = async () => {
      await world.meter('calls');
      await world.meter('peak', { type: 'MAX', field: 'n' });
      await world.meter('users', { type: 'COUNT_UNIQUE', field: 'u' });
      await world.plan('Pro', [
        fixed('10', { invoice_cadence: 'ADVANCE' }),
        tiers('calls', [
          [20, '0.5'],
          [null, '0.1'],
        ]),
        usage('peak', '0.01'),
        usage('users', '2'),
      ]);
      const feature = await world.post('/features', {
        name: 'Calls',
        lookup_key: 'calls',
        type: 'metered',
        meter_id: world.id('meter calls'),
      });
      await world.post('/entitlements', {
        plan_id: world.id('plan Pro'),
        feature_id: feature.id,
        feature_type: 'metered',
        usage_limit: 5,
        usage_reset_period: 'MONTHLY',
      });
      for (const [index, customer] of CUSTOMERS.entries()) {
        await world.on(`2026-01-0${index + 1}`, () => world.subscribe(customer, 'Pro'));
        await world.post('/wallets', {
          external_customer_id: customer,
          currency: 'usd',
          initial_credits_to_load: '100',
        });
      }
      await world.waitForPipeline();
    };

    let day = 5;
    const sent: string[] = [];
    const DEEDS: Record<string, (who: string, n: number) => Promise<unknown>> = {
      calls: (who, n) => used(who, 'calls', { n }),
      peaks: (who, n) => used(who, 'peak', { n }),
      users: (who, n) => used(who, 'users', { u: `u${n}` }),
      late: (who, n) => used(who, 'calls', { n }, -40 * 86_400_000),
      'a day passes': async () => {
        day += 1;
        await world.on(dayText(day));
      },
      'a month passes': async () => {
        day += 31;
        await world.on(dayText(day));
        await world.finalize();
      },
      'top up': async (who, n) => {
        const wallet = await walletOf(who);
        await world.post(`/wallets/${wallet!.id}/top-up`, {
          credits_to_add: String(n),
          transaction_reason: 'FREE_CREDIT_GRANT',
          idempotency_key: `t${Math.random()}`,
        });
      },
      debit: async (who) => {
        const wallet = await walletOf(who);
        if (Number(wallet!.credit_balance) < 1) return;
        await world.post(`/wallets/${wallet!.id}/debit`, {
          credits: '1',
          transaction_reason: 'MANUAL_BALANCE_DEBIT',
          idempotency_key: `d${Math.random()}`,
        });
      },
      'more is free': async (_who, n) => {
        const { items } = await world.get(`/entitlements?plan_ids=${world.id('plan Pro')}`);
        const answer = await world.api.request('PUT', `/entitlements/${items[0]!.id}`, { body: { usage_limit: n } });
        expect(answer.status, answer.text).to.equal(200);
      },
      void: async () => {
        const event_id = sent.pop();
        if (event_id === undefined) return;
        const answer = await world.api.request('POST', `/events/${event_id}/void`, { body: { reason: 'wrong' } });
        expect(answer.status, answer.text).to.equal(202);
        await until('it is voided', async () => {
          const { items } = await world.get(`/events/${event_id}/corrections`);
          return items.every(({ state }) => state === 'applied');
        });
      },
    };

    const used = async (who: string, event_name: string, properties: Record<string, unknown>, later = 0) => {
      const event_id = `e${sent.length}_${Math.random()}`.replace('.', '');
      sent.push(event_id);
      const timestamp = new Date(world.now.getTime() + later).toISOString();
      const answer = await world.api.request('POST', '/events', {
        body: { event_id, event_name, external_customer_id: who, timestamp, properties },
      });
      expect(answer.status, answer.text).to.equal(202);
      await world.waitForPipeline();
    };

    const walletOf = async (who: string) => (await world.get(`/customers/${world.id(`customer ${who}`)}/wallets`))[0];

    /** By the interface, where answers are kept, and by the same verbs where none are. */
    const same = async (who: string, when: string) => {
      const { services, scope } = world.api;
      const { id } = (await walletOf(who))!;
      const told = await world.get(`/wallets/${id}/balance/real-time`);
      const wallet = await WalletModel.fetch(scope, id, { database: services.postgres });
      const { as_of: _as_of, ...balance } = await loadRealTimeBalance(
        { ...services, usage_cache: undefined },
        wallet,
        world.now,
      );
      expect(pick(told, balance), `balance of ${who} ${when}`).to.deep.equal({ ...balance });
      const path = `/customers/usage?customer_id=${world.id(`customer ${who}`)}` as const;
      const usages = await world.get(path);
      expect(withoutAsOf(usages), `usage of ${who} ${when}`).to.deep.equal(withoutAsOf(await anewOf(path)));
    };

    const anewOf = async (path: string) => {
      const { port } = uncached.address() as AddressInfo;
      const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, { headers: { 'x-api-key': world.api.key } });
      return answer.json();
    };
  });

function dayText(day: number): string {
  return new Date(Date.UTC(2026, 0, day)).toISOString();
}

function pick(from: WalletBalance, like: object): object {
  return Object.fromEntries(Object.keys(like).map((key) => [key, from[key as keyof WalletBalance]]));
}

function withoutAsOf({ as_of: _as_of, ...rest }: SomeAnswer): object {
  return rest;
}

async function answers(): Promise<Record<string, number>> {
  const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.from, value]));
}
