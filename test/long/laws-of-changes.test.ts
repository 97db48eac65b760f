/**
 * Random timelines of changes, told to the interface and compared with plain arithmetic: what is paid in the end, less what was given
 * back, is the charge of each line for the time that it served, month by month: what the month costs until the end of that time
 * less what it costs until its beginning, each rounded; on drafts as by requests, and in whichever order the changes of one
 * instant come. And what each preview says is what is then done (docs/rules/proration.md, "Changes inside a period").
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice, Modification } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { check, provenBy } from '../support/verifier.ts';
import { fixed, startWorld, summarizeInvoice, tiers, type World } from '../support/world.ts';

const MONTHS = [0, 1, 2, 3].map((month) => Date.UTC(2026, month));
const LAST = MONTHS[3]!;
const APRIL = LAST + 30 * 86_400_000;

/** What is sold: what so many units cost for a month, by the arithmetic of the test, and whether it is paid ahead. */
const SOLD: Record<string, { ahead: boolean; costs(units: number): Decimal }> = {
  seat: { ahead: true, costs: (units) => new Decimal('31.37').times(units) },
  // The first three at 7.77, the others at 5.01.
  desk: {
    ahead: true,
    costs: (units) =>
      new Decimal('7.77').times(Math.min(units, 3)).plus(new Decimal('5.01').times(Math.max(0, units - 3))),
  },
  support: { ahead: false, costs: (units) => new Decimal('12.35').times(units) },
  pro: { ahead: true, costs: (units) => new Decimal('80').times(units) },
  'pro support': { ahead: false, costs: (units) => new Decimal('19.99').times(units) },
  extra: { ahead: true, costs: (units) => new Decimal('62').times(units) },
};
const PLANS: Record<string, string[]> = { Basic: ['seat', 'desk', 'support'], Pro: ['pro', 'pro support'] };

type Deed =
  | { readonly does: 'quantity'; readonly nth: number; readonly units: number }
  | { readonly does: 'attach' }
  | { readonly does: 'detach' }
  | { readonly does: 'plan' }
  | { readonly does: 'cancel' };
type Moment = { readonly minute: number; readonly deeds: readonly Deed[] };
type Timeline = { readonly moments: readonly Moment[]; readonly cancels: boolean };

const quantity = fc.record({
  does: fc.constant('quantity' as const),
  nth: fc.integer({ min: 0, max: 2 }),
  units: fc.integer({ min: 1, max: 9 }),
});
/** Of one instant: quantities of different lines, and an add-on that comes or goes, in any order; or another plan. */
const deeds: fc.Arbitrary<Deed[]> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.uniqueArray(quantity, { selector: ({ nth }) => nth, minLength: 1, maxLength: 3 }),
        fc.constantFrom<Deed[]>([], [{ does: 'attach' }], [{ does: 'detach' }]),
      )
      .chain(([quantities, addon]) =>
        fc.shuffledSubarray<Deed>([...quantities, ...addon], { minLength: quantities.length + addon.length }),
      ),
  },
  { weight: 1, arbitrary: fc.constant<Deed[]>([{ does: 'plan' }]) },
);
const timeline: fc.Arbitrary<Timeline> = fc.record({
  moments: fc
    .uniqueArray(fc.record({ minute: fc.integer({ min: 1, max: (LAST - MONTHS[0]!) / 60_000 - 1 }), deeds }), {
      selector: ({ minute }) => minute,
      minLength: 2,
      maxLength: 4,
    })
    .map((moments) => moments.toSorted((a, b) => a.minute - b.minute)),
  cancels: fc.boolean(),
});

const DAY_MS = 86_400_000;
const DECEMBER = Date.UTC(2025, 11);

/** Customers who take part in the subscription of a parent, and another that is invoiced with it: there or not, by turns. */
type Move = { readonly who: 'one' | 'two' | 'grouped'; readonly day: number };
const aDay = fc.integer({ min: 1, max: 30 });
const family = fc.record({
  moves: fc.uniqueArray(fc.record({ who: fc.constantFrom<Move['who']>('one', 'two', 'grouped'), day: aDay }), {
    selector: ({ who, day }) => `${who} ${day}`,
    minLength: 2,
    maxLength: 5,
  }),
  used: fc.array(
    fc.record({
      who: fc.constantFrom<Move['who'] | 'parent'>('one', 'two', 'grouped', 'parent'),
      day: aDay,
      n: fc.integer({ min: 1, max: 9 }),
    }),
    { minLength: 6, maxLength: 12 },
  ),
});
type Drawn = typeof family extends fc.Arbitrary<infer One> ? One : never;

/** The model of a family: whose units its parent pays for. */
class Household {
  readonly name: string;
  readonly moves: Drawn['moves'];
  readonly used: Drawn['used'];
  readonly #there = new Set<string>();
  readonly #units = { parent: 0, grouped: 0 };

  constructor(name: string, { moves, used }: Drawn) {
    this.name = name;
    this.moves = moves;
    this.used = used;
  }

  /** Who comes and goes does so when the day begins; what is used that day is used later. */
  async live(day: number, move: (who: Move['who'], isThere: boolean) => Promise<void>): Promise<void> {
    for (const { who } of this.moves.filter((one) => one.day === day)) {
      await move(who, this.#there.has(who));
      if (!this.#there.delete(who)) this.#there.add(who);
    }
    for (const { who, n } of this.used.filter((one) => one.day === day)) {
      if (who === 'grouped') this.#units.grouped += n;
      else if (who === 'parent' || this.#there.has(who)) this.#units.parent += n;
    }
  }

  /** A fee of 31, ten units at 1 and the others at 0.3; one that is in the group stands on the invoice of the parent. */
  owed(): { parent: string; grouped?: string } {
    const owes = (units: number) =>
      new Decimal('0.3')
        .times(Math.max(0, units - 10))
        .plus(Math.min(units, 10))
        .plus(31);
    const [parent, grouped] = [owes(this.#units.parent), owes(this.#units.grouped)];
    if (this.#there.has('grouped')) return { parent: parent.plus(grouped).toFixed() };
    return { parent: parent.toFixed(), grouped: grouped.toFixed() };
  }
}

/** What a subscription has, and had: the model. */
class Book {
  readonly open = new Map<string, { units: number; since: number }>();
  readonly #served: { name: string; units: number; from: number; to: number }[] = [];
  plan = 'Basic';

  begin(name: string, at: number, units = 1): void {
    this.open.set(name, { units, since: at });
  }

  end(name: string, at: number): void {
    const { units, since } = this.open.get(name)!;
    this.open.delete(name);
    this.#served.push({ name, units, from: since, to: at });
  }

  /** What has to be paid for all of it: in arrears to the end of March, ahead to that of April. */
  owed(): Decimal {
    for (const [name] of [...this.open]) this.end(name, SOLD[name]!.ahead ? APRIL : LAST);
    const parts = this.#served.flatMap(({ name, units, from, to }) =>
      MONTHS.map((start, month) => {
        const end = MONTHS[month + 1] ?? APRIL;
        const until = (at: number) =>
          SOLD[name]!.costs(units)
            .times(Math.min(Math.max(at, start), end) - start)
            .dividedBy(end - start)
            .toDecimalPlaces(2);
        return until(to).minus(until(from));
      }),
    );
    return sumDecimals(parts);
  }
}

describe('laws of changes', () => {
  let world: World;
  let addon_id: string;

  before(async () => {
    world = await startWorld({ now: '2025-12-01T00:00:00Z' });
    await world.meter('calls');
    const ahead = { invoice_cadence: 'ADVANCE' };
    const upToThree = [
      { up_to: 3, unit_amount: '7.77' },
      { up_to: null, unit_amount: '5.01' },
    ];
    const slabs = {
      type: 'FIXED',
      billing_model: 'TIERED',
      tier_mode: 'SLAB',
      tiers: upToThree,
      display_name: 'desk',
      ...ahead,
    };
    await world.plan('Basic', [
      fixed('31.37', { display_name: 'seat', ...ahead }),
      slabs,
      fixed('12.35', { display_name: 'support' }),
    ]);
    await world.plan('Pro', [
      fixed('80', { display_name: 'pro', ...ahead }),
      fixed('19.99', { display_name: 'pro support' }),
    ]);
    const cheaper: [number | null, string][] = [
      [10, '1'],
      [null, '0.3'],
    ];
    await world.plan('Family', [
      fixed('31', { display_name: 'fee' }),
      tiers('calls', cheaper, { display_name: 'calls' }),
    ]);
    addon_id = (await world.post('/addons', { name: 'Extra', lookup_key: 'extra', type: 'onetime' })).id;
    const extra = {
      entity_type: 'ADDON',
      entity_id: addon_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      price_unit_type: 'FIAT',
    };
    await world.post('/prices', {
      ...extra,
      ...fixed('62', { display_name: 'extra', ...ahead }),
      start_date: '2020-01-01T00:00:00Z',
    });
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;

  /** First what it would do, then it; both say the same. */
  async function doAsPreviewed(customer: string, verbs: string, body: object): Promise<void> {
    const said = await world.post(path(customer, `${verbs}/preview`), body as Record<string, unknown>);
    const done = await world.post(path(customer, `${verbs}/execute`), body as Record<string, unknown>);
    expect(effect(done.changed_resources!)).to.deep.equal(effect(said.changed_resources!));
  }

  async function perform(customer: string, deed: Deed, book: Book, at: number): Promise<void> {
    if (deed.does === 'quantity') {
      const names = PLANS[book.plan]!;
      const name = names[deed.nth % names.length]!;
      const { line_items } = await world.subscription(customer);
      const line = line_items.find((one) => one.display_name === name && one.end_date === null);
      const quantity_change_params = { line_items: [{ id: line!.id, quantity: String(deed.units) }] };
      await doAsPreviewed(customer, 'modify', { type: 'quantity_change', quantity_change_params });
      // The quantity that it has already changes nothing.
      if (book.open.get(name)!.units === deed.units) return;
      book.end(name, at);
      book.begin(name, at, deed.units);
    } else if (deed.does === 'attach' && !book.open.has('extra')) {
      await doAsPreviewed(customer, 'modify', { type: 'addon', addon_params: { action: 'add', add: { addon_id } } });
      book.begin('extra', at);
    } else if (deed.does === 'detach' && book.open.has('extra')) {
      const held = await world.get(path(customer, 'addons/associations'));
      const { id } = held.find(({ end_date }) => end_date === null)!;
      const remove = {
        addon_association_id: id,
        effective_date: new Date(at).toISOString(),
        proration_behavior: 'create_prorations',
      };
      await doAsPreviewed(customer, 'modify', { type: 'addon', addon_params: { action: 'remove', remove } });
      book.end('extra', at);
    } else if (deed.does === 'plan') {
      const plan = book.plan === 'Basic' ? 'Pro' : 'Basic';
      const target = { target_plan_id: world.id(`plan ${plan}`), proration_behavior: 'create_prorations' };
      await doAsPreviewed(customer, 'change/v2', target);
      for (const name of PLANS[book.plan]!) book.end(name, at);
      for (const name of PLANS[plan]!) book.begin(name, at);
      book.plan = plan;
    } else if (deed.does === 'cancel') {
      await world.cancel(customer, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
      for (const [name] of [...book.open]) book.end(name, at);
    }
  }

  it('what families are invoiced is what was used by who belonged to them then, as each preview has said', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const families = fc
      .sample(family, { numRuns: samples(2), seed })
      .map((drawn, nth) => new Household(`family ${nth}`, drawn));
    const terms = { start_date: '2025-12-01T00:00:00Z', end_date: '2026-01-01T00:00:00Z' };
    for (const { name, used } of families) {
      for (const role of ['parent', 'grouped']) await world.subscribe(`${name} ${role}`, 'Family', terms);
      for (const role of ['one', 'two']) await world.customer(`${name} ${role}`);
      const noon = (day: number) => new Date(DECEMBER + (day + 0.5) * DAY_MS).toISOString();
      await world.send(used.map(({ who, day, n }) => world.event(`${name} ${who}`, 'calls', { n, at: noon(day) })));
    }
    for (let day = 0; day < 31; day += 1) {
      world.at(new Date(DECEMBER + day * DAY_MS).toISOString());
      for (const one of families) await one.live(day, (who, isThere) => move(one.name, who, isThere));
    }
    world.at('2025-12-31T23:00:00Z');
    const payers = families.flatMap((one) => Object.keys(one.owed()).map((role) => `${one.name} ${role}`));
    const previews: ReturnType<typeof summarizeInvoice>[] = [];
    for (const payer of payers) previews.push(summarizeInvoice(await world.preview(payer)));
    await world.on('2026-01-01');
    const invoiced = new Map<string, Invoice[]>();
    for (const { name } of families)
      for (const role of ['parent', 'grouped'])
        invoiced.set(`${name} ${role}`, await world.invoices(`${name} ${role}`));
    expect(
      payers.map((payer) => summarizeInvoice(invoiced.get(payer)![0]!)),
      `seed ${seed}`,
    ).to.deep.equal(previews);
    for (const one of families) {
      const total = (role: string) => invoiced.get(`${one.name} ${role}`)!.map((invoice) => invoice.total);
      const { parent, grouped } = one.owed();
      expect([total('parent'), total('grouped')], `seed ${seed}, ${one.name}: ${JSON.stringify(one)}`).to.deep.equal([
        [parent],
        grouped ? [grouped] : [],
      ]);
    }
  }).timeout(120_000);

  /** Who is there leaves, and who is not joins. */
  function move(name: string, who: Move['who'], isThere: boolean): Promise<void> {
    const action = isThere ? 'remove' : 'add';
    const key = isThere ? 'external_customer_ids_to_remove' : 'external_customer_ids_to_inherit_subscription';
    return doAsPreviewed(
      `${name} parent`,
      'modify',
      who === 'grouped'
        ? {
            type: 'grouped_invoicing',
            grouped_invoicing_params: { action, child_subscription_ids: [world.id(`subscription ${name} grouped`)] },
          }
        : { type: 'inheritance', inheritance_params: { action, [key]: [`${name} ${who}`] } },
    );
  }

  it('what is paid in the end is what was served, in any order of what happens at one instant, as each preview has said', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    await world.on('2026-01-01');
    const timelines = fc.sample(timeline, { numRuns: samples(5), seed });
    // Everybody twice: what happens at one instant in this order, and in the other.
    const lives = timelines.flatMap(({ moments, cancels }, index) =>
      ['forth', 'back'].map((order) => {
        const last = moments.length - 1;
        const ordered = moments.map(({ minute, deeds: some }, nth): Moment => {
          const all: readonly Deed[] = cancels && nth === last ? [{ does: 'cancel' }] : some;
          return { minute, deeds: order === 'forth' ? all : all.toReversed() };
        });
        return { customer: `${index} ${order}`, moments: ordered, book: new Book() };
      }),
    );
    for (const { customer, book } of lives) {
      await world.subscribe(customer, 'Basic');
      for (const name of PLANS.Basic!) book.begin(name, MONTHS[0]!);
    }
    const days = [...MONTHS.slice(1)].flatMap((at) => [{ at, run: () => world.on(new Date(at).toISOString()) }]);
    // Drafts rest for ten days: what is changed meanwhile, they carry themselves.
    const rests = MONTHS.slice(1, 3).map((month) => ({ at: month + 10 * 86_400_000, run: () => world.finalize() }));
    const changes = lives.flatMap(({ customer, moments, book }) =>
      moments.map(({ minute, deeds: some }) => {
        const at = MONTHS[0]! + minute * 60_000;
        const run = async () => {
          for (const deed of some) await perform(customer, deed, book, at);
        };
        return { at, run };
      }),
    );
    for (const { at, run } of [...days, ...rests, ...changes].toSorted((a, b) => a.at - b.at)) {
      world.at(new Date(at).toISOString());
      await run();
    }
    await world.finalize();
    for (const { customer, book, moments } of lives) {
      const why = `seed ${seed}, ${customer}: ${JSON.stringify(moments)}\n${(await world.statements(customer)).join('\n')}`;
      expect(await paidBy(customer), why).to.equal(book.owed().toFixed());
      if (!customer.endsWith('forth')) continue;
      for (const { id } of await world.invoices(customer))
        expect((await check(await provenBy(world.api, id))).differences, why).to.deep.equal([]);
    }
  }).timeout(300_000);

  /** Less what lowered an invoice, or is in the wallet. */
  async function paidBy(customer: string): Promise<string> {
    const invoices = await world.invoices(customer);
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    const paid = sumDecimals(
      invoices.map(({ amount_due, total_credits_applied_after_tax: credits }) =>
        new Decimal(amount_due).minus(credits ?? 0),
      ),
    );
    return paid.minus(sumDecimals(wallets.map(({ balance }) => new Decimal(balance)))).toFixed();
  }
});

/** What is changed, without what only a record that is there has. */
function effect({ line_items, invoices, subscriptions }: Partial<Modification['changed_resources']>) {
  const lines = (line_items ?? []).map(({ id: _id, ...line }) => line);
  const said = (invoices ?? []).map(({ action, invoice }) => ({
    action,
    ...(invoice ? summarizeInvoice(invoice as Invoice) : {}),
  }));
  const others = (subscriptions ?? []).map(({ id: _id, ...one }) => one);
  return { lines, said, others };
}
