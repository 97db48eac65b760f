/**
 * Random subscriptions whose prices change inside January 2026: the requests that create and change them, and their
 * cost by the reference model.
 */
import { expect } from 'chai';
import { trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import type { Subscription } from './answers.ts';
import { chainsByModel, type ModelChained, type ModelChainLine } from './chain-model.ts';
import type { ModelTerms } from './invoice-model.ts';
import { Decimal, type ModelEvent, type ModelMeter } from './reference-model.ts';
import type { Chance } from './seeds.ts';
import { fixed, type PriceTerms, usage, type World } from './world.ts';

type Fields = Record<string, unknown>;

export const JANUARY = { start: '2026-01-01T00:00:00Z', end: '2026-02-01T00:00:00Z' };

/** Changes inside the period. `quantity` changes that of a fixed line and does not divide the usage line. */
export const KINDS = ['plan', 'line', 'phase', 'sync', 'addon', 'family', 'cancel', 'ending', 'quantity'] as const;
export type Kind = (typeof KINDS)[number];

export type Measure = {
  name: string;
  aggregation: ModelMeter['aggregation'];
  never?: boolean;
};

export const MEASURES: readonly Measure[] = [
  { name: 'count', aggregation: { type: 'COUNT' } },
  { name: 'sum', aggregation: { type: 'SUM', field: 'n' } },
  { name: 'sum by day', aggregation: { type: 'SUM', field: 'n', bucket_size: 'DAY' } },
  { name: 'sum by month', aggregation: { type: 'SUM', field: 'n', bucket_size: 'MONTH' } },
  { name: 'multiplied', aggregation: { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.25' } },
  { name: 'max', aggregation: { type: 'MAX', field: 'n' } },
  { name: 'max by day', aggregation: { type: 'MAX', field: 'n', bucket_size: 'DAY' } },
  { name: 'max by group', aggregation: { type: 'MAX', field: 'n', bucket_size: 'DAY', group_by: 'g' } },
  { name: 'latest', aggregation: { type: 'LATEST', field: 'n' } },
  { name: 'unique', aggregation: { type: 'COUNT_UNIQUE', field: 'n' } },
  { name: 'mean', aggregation: { type: 'AVG', field: 'n' } },
  { name: 'weighted', aggregation: { type: 'WEIGHTED_SUM', field: 'n' } },
  { name: 'standing', aggregation: { type: 'WEIGHTED_SUM', field: 'n' }, never: true },
];

/** Two prices of each model: the first one, and its successor. */
export const TERMS: Record<ModelTerms['model'], readonly [ModelTerms, ModelTerms]> = {
  FLAT_FEE: [
    { model: 'FLAT_FEE', amount: '0.37' },
    { model: 'FLAT_FEE', amount: '1.1' },
  ],
  PACKAGE: [
    { model: 'PACKAGE', amount: '5', divide_by: 10, round: 'up' },
    { model: 'PACKAGE', amount: '7', divide_by: 7, round: 'down' },
  ],
  SLAB: [
    {
      model: 'SLAB',
      tiers: [
        { up_to: 10, unit_amount: '1' },
        { up_to: 50, unit_amount: '0.5', flat_amount: '3' },
        { up_to: null, unit_amount: '0.1' },
      ],
    },
    {
      model: 'SLAB',
      tiers: [
        { up_to: 5, unit_amount: '2', flat_amount: '1' },
        { up_to: null, unit_amount: '0.7' },
      ],
    },
  ],
  VOLUME: [
    {
      model: 'VOLUME',
      tiers: [
        { up_to: 20, unit_amount: '1' },
        { up_to: null, unit_amount: '0.4', flat_amount: '2' },
      ],
    },
    {
      model: 'VOLUME',
      tiers: [
        { up_to: 10, unit_amount: '3' },
        { up_to: null, unit_amount: '0.9' },
      ],
    },
  ],
};

export type Changed = {
  name: string;
  kind: Kind;
  measure: Measure;
  timezone: string;
  /** Terms and the instants from which they apply; the first entry is the begin. */
  cuts: { at: string; terms: ModelTerms }[];
  events: Fields[];
  /** Begin of the billed period. If it is inside the month, the subscription's periods are calendar months. */
  start: string;
  end: string | null;
};

const CUTS = ['05T00:00', '08T12:00', '12T07:30', '16T00:00', '16T12:00', '19T21:45', '22T18:00'];

function drawChanged(
  chance: Chance,
  given: { name: string; kind: Kind; measure: Measure; model: ModelTerms['model'] },
): Changed {
  const { kind, measure, model } = given;
  const [before, after] = TERMS[model];
  const other = chance.pick([after, after, TERMS.FLAT_FEE[1]]);
  // A `line` that gets the terms that it already has is not divided, so its patterns have no equal neighbours.
  const patterns = kind === 'line' ? ['ab', 'aba', 'ba'] : ['aa', 'aaa', 'ab', 'aab', 'aba', 'abb', 'ba'];
  const pattern = kind === 'quantity' ? 'a' : chance.pick(patterns);
  const isShort = measure.never !== true && ['plan', 'line', 'sync'].includes(kind) && chance.next() < 0.25;
  const start = isShort ? '2026-01-04T06:00:00Z' : JANUARY.start;
  const times = chance.shuffled(CUTS).slice(0, pattern.length).sort();
  const cuts = [...pattern].map((letter, index) => ({
    at: index === 0 && kind !== 'addon' ? start : `2026-01-${times[index]}:00Z`,
    terms: letter === 'a' ? before : other,
  }));
  // In another time zone the month ends at another instant. UTC is needed if the period follows the calendar or usage
  // counts since December.
  const timezone = isShort || measure.never ? 'UTC' : chance.pick(['UTC', 'UTC', 'Asia/Kolkata', 'America/New_York']);
  const end = kind === 'cancel' || kind === 'ending' ? '2026-01-24T00:00:00Z' : null;
  const customers = kind === 'family' ? [given.name, `${given.name} child`] : [given.name];
  const events = Array.from({ length: chance.whole(8, 16) }, (_, index) => {
    const minute = chance.whole(0, 31 * 24 * 60 - 1);
    const at = new Date(Date.parse(JANUARY.start) + minute * 60_000).toISOString();
    return makeEvent(chance, { id: `${given.name} ${index}`, customer: chance.pick(customers), measure, at });
  });
  if (measure.never)
    events.push(
      makeEvent(chance, { id: `${given.name} before`, customer: given.name, measure, at: '2025-12-10T00:00:00Z' }),
    );
  return { name: given.name, kind, measure, timezone, cuts, events, start, end };
}

function makeEvent(
  chance: Chance,
  { id, customer, measure, at }: { id: string; customer: string; measure: Measure; at: string },
): Fields {
  const n =
    measure.aggregation.type === 'COUNT_UNIQUE'
      ? chance.whole(1, 12)
      : new Decimal(chance.whole(-8, 60)).div(chance.pick([1, 1, 4])).toNumber();
  return {
    event_id: id,
    event_name: measure.name,
    external_customer_id: customer,
    timestamp: at,
    properties: { n, g: chance.pick(['x', 'y']) },
    source: 'changes',
  };
}

/** Fields of prices, overrides and changes of lines for these terms. */
function toPriceFields(terms: ModelTerms): Fields {
  const none = { amount: null, tier_mode: null, tiers: null, transform_quantity: null };
  if (terms.model === 'FLAT_FEE') return { ...none, billing_model: 'FLAT_FEE', amount: terms.amount };
  if (terms.model === 'PACKAGE') {
    const { amount, divide_by, round } = terms;
    return { ...none, billing_model: 'PACKAGE', amount, transform_quantity: { divide_by, round } };
  }
  const tiers = terms.tiers.map(({ up_to, unit_amount, flat_amount = null }) => ({ up_to, unit_amount, flat_amount }));
  return { ...none, billing_model: 'TIERED', tier_mode: terms.model, tiers };
}

/** A step at an instant that creates the subscription or changes it. */
export type Deed = { at: string; run: () => Promise<unknown> };

export async function makeMeters(world: World): Promise<void> {
  for (const { name, aggregation, never } of MEASURES)
    await world.meter(name, aggregation, never ? { reset_usage: 'NEVER' } : {});
  await world.meter('idle');
}

export function planDeeds(world: World, changed: Changed): Deed[] {
  const { name, kind, cuts, measure, timezone, end } = changed;
  const priced = (terms: ModelTerms): PriceTerms => usage(measure.name, '0', toPriceFields(terms));
  const path = <Verb extends string>(verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${name}`)}/${verb}` as const;
  const request = async <Method extends string, Path extends string>(method: Method, where: Path, body: Fields) => {
    const answer = await world.api.request(method, where, { body });
    expect(answer.status, `${name}: ${method} ${where}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  };
  const start = measure.never ? '2025-12-01T00:00:00Z' : changed.start;
  const subscribe = (fields: Fields = {}) =>
    world.subscribe(name, name, {
      timezone,
      start_date: start,
      ...(changed.start === JANUARY.start ? {} : { billing_cycle: 'calendar' }),
      ...fields,
    });
  const runningLine = async () =>
    (await world.subscription(name)).line_items.find(
      (line) => line.meter_id === world.id(`meter ${measure.name}`) && line.end_date === null,
    );
  const [first, ...later] = cuts;
  const deed = (at: string, run: Deed['run']): Deed => ({ at, run });
  const changePlan = later.map(({ at, terms }, index) =>
    deed(at, async () => {
      await world.plan(`${name} ${index}`, [priced(terms)]);
      await world.post(path('change/v2/execute'), {
        target_plan_id: world.id(`plan ${name} ${index}`),
        proration_behavior: 'create_prorations',
      });
    }),
  );
  const changePrice = later.map(({ at, terms }) =>
    deed(at, async () => {
      const { price_id } = (await runningLine())!;
      await request('DELETE', `/prices/${price_id}`, { end_date: at });
      await world.price(name, { ...priced(terms), start_date: at });
      await syncPlan(world, name);
    }),
  );
  const begin = deed(start, async () => {
    await world.plan(name, [priced(first!.terms)]);
    await subscribe();
  });

  switch (kind) {
    case 'plan':
      return [begin, ...changePlan];
    case 'cancel':
      return [begin, ...changePlan, deed(end!, () => world.cancel(name))];
    case 'ending': {
      const cancel = () => world.cancel(name, { cancellation_type: 'scheduled_date', cancel_at: end });
      // Once the end is set, the plan can no longer change.
      return [begin, ...changePlan, deed(later.at(-1)!.at, cancel)];
    }
    case 'line':
      return [
        begin,
        ...later.map(({ at, terms }) =>
          deed(at, async () =>
            request('PUT', `/subscriptions/lineitems/${(await runningLine())!.id}`, toPriceFields(terms)),
          ),
        ),
      ];
    case 'phase':
      return [
        deed(start, async () => {
          await world.plan(name, []);
          const { id } = await world.price(name, usage(measure.name, '999'));
          const phases = cuts.map(({ at, terms }, index) => ({
            start_date: index === 0 ? start : at,
            ...(cuts[index + 1] ? { end_date: cuts[index + 1]!.at } : {}),
            override_line_items: [{ price_id: id, ...toPriceFields(terms) }],
          }));
          await subscribe({ phases });
        }),
      ];
    case 'sync':
      return [begin, ...changePrice];
    case 'addon':
      return addonDeeds(world, changed, { subscribe, request, priced });
    case 'family': {
      const child = { external_customer_ids_to_inherit_subscription: [`${name} child`] };
      const modify = (inheritance_params: Fields) =>
        world.post(path('modify/execute'), { type: 'inheritance', inheritance_params });
      const join = deed(FAMILY.from, async () => {
        await world.customer(`${name} child`);
        await modify(child);
      });
      const leave = deed(FAMILY.to, () =>
        modify({ action: 'remove', external_customer_ids_to_remove: [`${name} child`] }),
      );
      return [begin, ...changePrice, join, leave];
    }
    case 'quantity': {
      const seats = deed(start, () => world.price(name, fixed('0', { display_name: 'seat' })));
      const change = deed('2026-01-16T00:00:00Z', async () => {
        const { line_items } = await world.subscription(name);
        const seat = line_items.find((line) => line.display_name === 'seat');
        const quantity_change_params = { line_items: [{ id: seat!.id, quantity: '3' }] };
        await world.post(path('modify/execute'), { type: 'quantity_change', quantity_change_params });
      });
      const subscribed = deed(start, () => subscribe());
      const made = deed(start, () => world.plan(name, [priced(first!.terms)]));
      return [made, seats, subscribed, change];
    }
  }
}

/** Interval in which a child inherits the subscription of its parent. */
const FAMILY = { from: '2026-01-07T00:00:00Z', to: '2026-01-21T00:00:00Z' };
/** An add-on is detached two days before the next one is attached, or a minute after its own begin if that is later. */
const GAP_MS = 2 * 86_400_000;

type Doing = {
  subscribe(fields?: Fields): Promise<Subscription>;
  request(method: string, where: string, body: Fields): Promise<unknown>;
  priced(terms: ModelTerms): PriceTerms;
};

/** Steps that attach an add-on, detach it, and attach it again with the terms of the next entry of `cuts`. */
function addonDeeds(world: World, { name, cuts, measure }: Changed, { subscribe, request, priced }: Doing): Deed[] {
  const held: { addon_id?: string; association?: string } = {};
  const begin: Deed = {
    at: measure.never ? '2025-12-01T00:00:00Z' : JANUARY.start,
    run: async () => {
      await world.plan(name, [usage('idle', '1')]);
      await subscribe();
      held.addon_id = (await world.post('/addons', { name, lookup_key: name, type: 'multiple_instance' })).id;
      await world.price(name, { ...priced(cuts[0]!.terms), entity_type: 'ADDON', entity_id: held.addon_id });
    },
  };
  const subscription_id = () => world.id(`subscription ${name}`);
  const attach = cuts.map(
    ({ at, terms }, index): Deed => ({
      at,
      run: async () => {
        const addon = { subscription_id: subscription_id(), addon_id: held.addon_id };
        const { items } = await world.get(`/prices?entity_type=ADDON&entity_ids=${held.addon_id}`);
        const override_line_items = index === 0 ? [] : [{ price_id: items[0]!.id, ...toPriceFields(terms) }];
        held.association = (await world.post('/subscriptions/addon', { ...addon, override_line_items })).id;
      },
    }),
  );
  const detach = cuts.slice(1).map(({ at }, index): Deed => {
    const effective = gapBefore(at, cuts[index]!.at);
    return {
      at: effective,
      run: () =>
        request('DELETE', '/subscriptions/addon', {
          addon_association_id: held.association,
          effective_date: effective,
        }),
    };
  });
  // At equal instants the add-on is detached first, and then attached.
  return [begin, ...detach, ...attach];
}

function gapBefore(at: string, begun: string): string {
  const [from, to] = [Date.parse(begun), Date.parse(at)];
  return new Date(Math.max(to - GAP_MS, from + 60_000)).toISOString();
}

async function syncPlan(world: World, name: string): Promise<void> {
  const { status, body, text } = await world.api.request(
    'POST',
    `/plans/${world.id(`plan ${name}`)}/sync/subscriptions`,
  );
  expect(status, text).to.equal(200);
  const signal = AbortSignal.timeout(60_000);
  const attempt = { attempt: 1, is_last: false, clock: () => world.now, signal, timeout_ms: 60_000 };
  expect(await trySync(world.api.services, { ...world.api.scope, ...body }, attempt)).to.equal('completed');
}

/** Amounts by the model: one for each line, with its begin, and the total. */
export function modelAmounts(changed: Changed): { lines: string[]; total: string } {
  const lines = modelLines(changed);
  const chains = chainsByModel({ ...modelChained(changed), lines }, changed.events as ModelEvent[]);
  const shown = chains
    .flatMap((chain) => chain.lines)
    .map(({ name, amount }) => `${lines.find((line) => line.name === name)!.start.slice(0, 16)} ${amount}`);
  const total = chains.reduce((sum, chain) => sum.plus(chain.total), new Decimal(0));
  return { lines: shown.sort(), total: total.toFixed() };
}

/** Total without divisions between equal terms, which must not change it. Add-ons keep theirs: usage between two add-ons is not charged. */
export function totalWithoutEqualCuts(changed: Changed): string {
  if (changed.kind === 'addon') return modelAmounts(changed).total;
  const whole = changed.cuts.filter(({ terms }, index) => terms !== changed.cuts[index - 1]?.terms);
  return modelAmounts({ ...changed, cuts: whole }).total;
}

function modelChained({ measure, name, kind, timezone, start, end }: Changed): Omit<ModelChained, 'lines'> {
  const members = kind === 'family' ? [{ customer: name }, { customer: `${name} child`, ...FAMILY }] : undefined;
  return {
    meter: { event_name: measure.name, aggregation: measure.aggregation },
    period: { start, end: end ?? JANUARY.end },
    whole: JANUARY,
    timezone,
    billing_anchor: JANUARY.start,
    ...(measure.never ? { since: '2025-12-01T00:00:00Z' } : {}),
    ...(members ? { members } : {}),
  };
}

function modelLines({ cuts, kind, end }: Changed): ModelChainLine[] {
  return cuts.map(({ at, terms }, index) => {
    const next = cuts[index + 1]?.at;
    const ends = next === undefined ? (end ?? JANUARY.end) : kind === 'addon' ? gapBefore(next, at) : next;
    return { name: String(index), start: at, end: ends, terms };
  });
}

/**
 * Draws changes for each aggregation: one for each of `models` random price models. Every kind of change is used before
 * one is used again.
 */
export function drawChanges(chance: Chance, models: number): Changed[] {
  const all = Object.keys(TERMS) as ModelTerms['model'][];
  let kinds = chance.shuffled(KINDS);
  return MEASURES.flatMap((measure) =>
    chance
      .shuffled(all)
      .slice(0, models)
      .map((model) => {
        if (kinds.length === 0) kinds = chance.shuffled(KINDS);
        const kind = kinds.pop()!;
        return drawChanged(chance, { name: `${measure.name} ${model} ${kind}`, kind, measure, model });
      }),
  );
}
