/**
 * Two that change one family at a time, while the scheduler was away for two days: billing, cancelling, joining and leaving, and
 * thresholds. What is invoiced in the end is what one of the two orders would have made, and nobody waits for the other for ever.
 */
import { expect } from 'chai';
import { billPeriod } from '../../actions/lifecycle/billing/bill-period.ts';
import { billThreshold } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import type { InvoiceLine } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, statement, usage, type World } from '../support/world.ts';

const ROLES = ['parent', 'grouped', 'single', 'solo'] as const;

describe('scenario: two change a family at once', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    const calls = usage('calls', '1', { display_name: 'calls' });
    await world.plan('Team', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }), calls]);
    await world.plan('Calls', [calls]);
  });
  after(() => world.stop());

  const idOf = (family: string, role: string) => world.id(`subscription ${family} ${role}`);
  const ask = async (path: string, body: object): Promise<string> => {
    const answer = await world.api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201, 400, 409]);
    return String(answer.status);
  };
  const modify = (id: string, type: string, params: object) =>
    ask(`/subscriptions/${id}/modify/execute`, { type, [`${type}_params`]: params });
  const bill = async (family: string, roles: readonly (typeof ROLES)[number][]) => {
    const { services, scope } = world.api;
    for (const role of roles)
      await billPeriod(services, scope, { subscription_id: idOf(family, role), now: world.now });
    return 'billed';
  };

  const DEEDS: Record<string, (family: string) => Promise<unknown>> = {
    bill: (family) => bill(family, ['parent', 'single', 'solo']),
    cancel: (family) => ask(`/subscriptions/${idOf(family, 'parent')}/cancel`, { cancellation_type: 'immediate' }),
    end: (family) => ask(`/subscriptions/${idOf(family, 'solo')}/cancel`, { cancellation_type: 'immediate' }),
    add: (family) =>
      modify(idOf(family, 'parent'), 'grouped_invoicing', {
        action: 'add',
        child_subscription_ids: [idOf(family, 'single')],
      }),
    'join by itself': (family) =>
      modify(idOf(family, 'single'), 'grouped_invoicing', {
        action: 'add',
        parent_subscription_id: idOf(family, 'parent'),
      }),
    remove: (family) =>
      modify(idOf(family, 'parent'), 'grouped_invoicing', {
        action: 'remove',
        child_subscription_ids: [idOf(family, 'grouped')],
      }),
    heir: (family) =>
      modify(idOf(family, 'parent'), 'inheritance', {
        action: 'add',
        external_customer_ids_to_inherit_subscription: [`${family} heir`],
      }),
    threshold: async (family) => {
      const { services, scope } = world.api;
      return billThreshold(services, scope, { subscription_id: idOf(family, 'solo'), now: world.now });
    },
  };
  const PAIRS: readonly (readonly [string, string])[] = [
    ['bill', 'cancel'],
    ['bill', 'join by itself'],
    ['bill', 'remove'],
    ['cancel', 'join by itself'],
    ['cancel', 'heir'],
    ['add', 'join by itself'],
    ['bill', 'threshold'],
    ['end', 'threshold'],
  ];

  async function found(family: string): Promise<void> {
    await world.subscribe(`${family} grouped`, 'Team');
    await world.subscribe(`${family} single`, 'Team');
    await world.subscribe(`${family} solo`, 'Calls', { auto_invoice_threshold: '30' });
    const inheritance = { subscriptions_ids_for_grouped_invoicing: [idOf(family, 'grouped')] };
    await world.subscribe(`${family} parent`, 'Team', { inheritance });
    await world.post('/customers', { external_id: `${family} heir`, name: 'heir' });
    const used = [
      ['parent', 10],
      ['grouped', 20],
      ['single', 30],
      ['solo', 40],
      ['heir', 5],
    ] as const;
    await world.send(used.map(([role, n]) => world.event(`${family} ${role}`, 'calls', { n })));
  }

  /** Everything that was invoiced, and of what kind each is in the end. */
  async function told(family: string): Promise<string> {
    const texts = await Promise.all(
      ROLES.map(async (role) => {
        const { subscription_type, subscription_status } = await world.subscription(`${family} ${role}`);
        const invoices = await world.invoices(`${family} ${role}`);
        const said = invoices.map((invoice) => statement({ ...invoice, line_items: inOrder(invoice.line_items) }));
        return [`${role}: ${subscription_type} ${subscription_status}`, ...said].join('\n');
      }),
    );
    return texts.join('\n\n');
  }

  /** Those of a group stand in the order of their ids, which say nothing here. */
  const inOrder = (lines: InvoiceLine[]) =>
    [...lines].sort((a, b) => (`${a.display_name} ${a.amount}` < `${b.display_name} ${b.amount}` ? -1 : 1));

  it('and what is invoiced is what one after the other would have invoiced', async function () {
    this.timeout(400_000);
    await world.on('2026-01-01');
    const families = PAIRS.flatMap((pair) => ['a;b', 'b;a', 'a,b'].map((how) => ({ pair, how })));
    const nameOf = ({ pair, how }: { pair: readonly [string, string]; how: string }) => `${pair.join('/')} ${how}`;
    await Promise.all(families.map((family) => found(nameOf(family))));
    world.at('2026-02-03');
    await world.waitForPipeline();
    for (const family of families.filter(({ how }) => how.includes(';'))) {
      const [a, b] = family.how === 'a;b' ? family.pair : [...family.pair].reverse();
      await DEEDS[a!]!(nameOf(family));
      await DEEDS[b!]!(nameOf(family));
    }
    for (const family of families.filter(({ how }) => how.includes(','))) {
      await Promise.all(family.pair.map((deed) => DEEDS[deed]!(nameOf(family))));
    }
    await world.bill();
    await world.on('2026-03-01');
    for (const pair of PAIRS) {
      const of = (how: string) => told(nameOf({ pair, how }));
      const serial = await Promise.all([of('a;b'), of('b;a')]);
      expect(await of('a,b'), pair.join(' and ')).to.be.oneOf(serial);
    }
  });

  it('a child that joins by itself waits for its parent, and holds nothing meanwhile', async () => {
    await found('last');
    const { postgres } = world.api.services;
    await postgres.transaction(async (holding) => {
      await holding('subscriptions').where('id', idOf('last', 'parent')).forUpdate();
      const joining = DEEDS['join by itself']!('last');
      await until('the child waits', async () => {
        const waiting = postgres('pg_stat_activity').where({ wait_event_type: 'Lock' });
        return (await waiting.whereRaw('datname = current_database()')).length > 0;
      });
      // Whoever bills the parent takes its children next.
      const [child] = await holding('subscriptions').where('id', idOf('last', 'single')).forUpdate().noWait();
      expect(child.subscription_type).to.equal('STANDALONE');
      await holding.commit();
      expect(await joining).to.equal('200');
    });
  });

  /** Both are let go at one instant, when each waits for the first row that it needs. */
  async function crossing(held: Record<string, string[]>, deeds: (() => Promise<unknown>)[]): Promise<unknown[]> {
    const { postgres } = world.api.services;
    const waiting = () =>
      postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).whereRaw('datname = current_database()');
    const running = await postgres.transaction(async (holding) => {
      for (const [table, ids] of Object.entries(held)) await holding(table).whereIn('id', ids).forUpdate();
      const begun = deeds.map((deed) => deed());
      await until('both wait', async () => (await waiting()).length === deeds.length);
      return { begun };
    });
    return Promise.all(running.begun);
  }

  it('two that add each other to their groups do not wait for each other', async () => {
    await Promise.all(['left', 'right'].map((family) => world.subscribe(`${family} single`, 'Team')));
    const single = (family: string) => idOf(family, 'single');
    const add = (parent: string, child: string) =>
      modify(single(parent), 'grouped_invoicing', { action: 'add', child_subscription_ids: [single(child)] });
    const held = { subscriptions: [single('left'), single('right')] };
    const deeds = [() => add('left', 'right'), () => add('right', 'left')];
    expect((await crossing(held, deeds)).sort()).to.deep.equal(['200', '400']);
  });

  it('nor does who makes a group of a subscription in which its customer is to take part, nor two who pay for each other', async () => {
    await world.subscribe('host single', 'Team');
    await world.customer('guest');
    const terms = { plan_id: world.id('plan Team'), currency: 'usd', billing_period: 'MONTHLY' };
    const make = (external_customer_id: string, fields: object) =>
      ask('/subscriptions', { ...terms, external_customer_id, ...fields });
    const host = idOf('host', 'single');
    const held = { subscriptions: [host], customers: [world.id('customer guest')] };
    const group = { inheritance: { subscriptions_ids_for_grouped_invoicing: [host] } };
    const made = await crossing(held, [
      () => make('guest', group),
      () => make('guest', { parent_subscription_id: host }),
    ]);
    expect(made.sort()).to.deep.equal(['201', '400']);
    await Promise.all(['one', 'other'].map((name) => world.customer(name)));
    const paidBy = (name: string) => ({ inheritance: { invoicing_customer_external_id: name } });
    const both = await crossing({ customers: ['one', 'other'].map((name) => world.id(`customer ${name}`)) }, [
      () => make('one', paidBy('other')),
      () => make('other', paidBy('one')),
    ]);
    expect(both).to.deep.equal(['201', '201']);
  });

  it('a billing that is killed on the way leaves nothing, and is done again', async () => {
    await world.on('2026-03-01');
    await found('killed');
    const { postgres } = world.api.services;
    const cycles = async () =>
      (await world.invoices('killed parent')).filter(({ billing_reason }) => billing_reason === 'SUBSCRIPTION_CYCLE');
    world.at('2026-04-01');
    await world.waitForPipeline();
    const holding = await postgres.transaction();
    await holding('subscriptions').where('id', idOf('killed', 'grouped')).forUpdate();
    const billing = bill('killed', ['parent']).then(
      () => 'billed',
      () => 'killed',
    );
    const waiting = () =>
      postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).whereRaw('datname = current_database()');
    await until('its invoice is drafted, and it waits for the child', async () => (await waiting()).length > 0);
    await waiting().select(postgres.raw('pg_terminate_backend(pid)'));
    expect(await billing).to.equal('killed');
    await holding.rollback();
    expect(await cycles()).to.deep.equal([]);
    await bill('killed', ['parent']);
    await bill('killed', ['parent']);
    expect((await cycles()).map(({ total }) => total)).to.deep.equal(['92']);
    const ends = await Promise.all(
      ['parent', 'grouped'].map(async (role) => (await world.subscription(`killed ${role}`)).current_period_end),
    );
    expect(ends).to.deep.equal(['2026-05-01T00:00:00Z', '2026-05-01T00:00:00Z']);
  });

  it('whoever joins and leaves at one instant, and in whichever order, the same is invoiced', async () => {
    const ORDERS = [
      ['add', 'remove'],
      ['remove', 'add'],
      ['join by itself', 'remove'],
      ['add', 'leave', 'remove', 'join by itself'],
      ['remove', 'take back', 'add', 'remove'],
    ];
    const member = (family: string, action: string, role: string) =>
      modify(idOf(family, 'parent'), 'grouped_invoicing', { action, child_subscription_ids: [idOf(family, role)] });
    const all: typeof DEEDS = {
      ...DEEDS,
      leave: (family) => member(family, 'remove', 'single'),
      'take back': (family) => member(family, 'add', 'grouped'),
    };
    for (const order of ORDERS) {
      const family = order.join(', ');
      await found(family);
      for (const deed of order) expect(await all[deed]!(family), `${deed} of ${family}`).to.equal('200');
    }
    await world.on('2026-05-01');
    const [first, ...others] = await Promise.all(ORDERS.map((order) => told(order.join(', '))));
    for (const other of others) expect(other).to.equal(first);
  });
});
