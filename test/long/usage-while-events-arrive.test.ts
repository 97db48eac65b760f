/**
 * Questions while events arrive: every answer is that of the events up to some place in each partition of the log, at or
 * behind the one that it names, to the digit; and none names a place before that of an answer which it came after.
 */
import { expect } from 'chai';
import { register } from 'prom-client';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import { readUsageReport, type UsageReport } from '../../storage/usage/usage.ts';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';
import {
  instantText,
  type ModelEvent,
  type ModelMeter,
  type ModelQuestion,
  type ModelUsage,
  type ModelWindow,
  usageByModel,
} from '../support/reference-model.ts';
import { type Chance, createChance, seedsToRun } from '../support/seeds.ts';

const PARTITIONS = 2;
const BATCHES = 16;
const PER_BATCH = 40;
const FIRST = Date.parse('2026-03-10T00:00:00Z');
const HOUR = 3_600_000;
const DAYS = 5;
const CUSTOMERS = ['acme', 'globex'];
const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata'];
const WINDOWS: (ModelWindow | undefined)[] = [undefined, undefined, '15MIN', 'HOUR', '6HOUR', 'DAY', 'WEEK', 'MONTH'];

const AGGREGATIONS: ModelMeter['aggregation'][] = [
  { type: 'COUNT' },
  { type: 'SUM', field: 'n' },
  { type: 'AVG', field: 'n' },
  { type: 'COUNT_UNIQUE', field: 'host' },
  { type: 'LATEST', field: 'n' },
  { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.003' },
  { type: 'MAX', field: 'n' },
  { type: 'WEIGHTED_SUM', field: 'n' },
  { type: 'MAX', field: 'n', bucket_size: 'HOUR', group_by: 'host' },
];

/** Questions that are asked again and again, with ends in some hours, as a dashboard does. */
const DASHBOARD = 6;

type Asked = { meter: number; question: ModelQuestion; report: UsageReport; behind: ReadonlyMap<number, bigint> };
type Placed = { event: ModelEvent; partition: number; offset: bigint };

describe('usage while events arrive', function () {
  this.timeout(120_000);

  for (const seed of seedsToRun(2)) {
    it(`any question about any meter (seed ${seed})`, async () => {
      const metering = await startMetering({ partitions: PARTITIONS, slice_events_max: 60 });
      try {
        await playOn(metering, createChance(seed));
      } finally {
        await metering.stop();
      }
    });

    it(`what is kept in memory (seed ${seed})`, async () => {
      const usage_cache = new UsageCache();
      const metering = await startMetering({ partitions: PARTITIONS, slice_events_max: 60, usage_cache });
      const before = await answersFromMemory();
      try {
        await playOn(metering, createChance(seed), dashboardOf(createChance(seed + 1)));
      } finally {
        await metering.stop();
      }
      expect((await answersFromMemory()) - before, 'answers from memory').to.be.greaterThan(BATCHES / 2);
    });
  }
});

async function answersFromMemory(): Promise<number> {
  const { values } = await register.getSingleMetric('farthing_usage_answers_total')!.get();
  return values.find(({ labels }) => labels['source'] === 'memory')!.value;
}

async function playOn(metering: Metering, chance: Chance, dashboard?: readonly Recurring[]): Promise<void> {
  for (const [index, aggregation] of AGGREGATIONS.entries()) {
    const definition = { event_name: 'call', filters: [], aggregation };
    await metering.announce(`m${index}`, definition as Omit<MeterDefinition, 'id' | 'reset_usage'>);
  }
  await metering.waitForPipeline();
  const events = Array.from({ length: BATCHES * PER_BATCH }, (_none, index) => randomEvent(chance, `e${index}`));
  const asked: Asked[] = [];
  for (let from = 0; from < events.length; from += PER_BATCH) {
    const batch = [...events.slice(from, from + PER_BATCH), ...sentBefore(events.slice(0, from), chance)];
    const ask = () => askOne(metering, chance, dashboard && chance.next() < 0.9 ? chance.pick(dashboard) : undefined);
    const questions = [ask(), ask()];
    // Now and then some more days get daily rollups.
    if (chance.next() < 0.4)
      await metering.requestDailyRollups(new Date(FIRST + chance.whole(-1, DAYS + 2) * 24 * HOUR).toISOString());
    await metering.send(batch);
    const answers = await Promise.all(questions);
    for (const one of answers) for (const earlier of asked.slice(-2)) expectNotOlder(one, earlier);
    asked.push(...answers);
    if (!dashboard) continue;
    // Whoever asks while nothing moves is remembered, and answered from memory by what the next batch brings.
    if (chance.next() < 0.5) await metering.waitForPipeline();
    for (const one of dashboard) {
      const before = await answersFromMemory();
      const answer = await askOne(metering, chance, one);
      // Memory answers as of the very place that it names.
      asked.push((await answersFromMemory()) > before ? { ...answer, behind: placeOf(answer.report) } : answer);
    }
  }
  await metering.waitForPipeline();
  asked.push(...(await Promise.all(AGGREGATIONS.map((_none, meter) => askOne(metering, chance, { meter })))));
  const placed = await placesOf(metering, events);
  for (const one of asked) {
    const place = placeThatExplains(one, placed);
    expect(place, `no place in the log explains ${JSON.stringify({ ...one, behind: undefined })}`).to.be.an('array');
  }
  const counts = new Set(asked.map(({ report }) => Object.values(report.high_water).join()));
  expect(counts.size, 'several places on the way').to.be.greaterThan(4);
}

function expectNotOlder({ report }: Asked, earlier: Asked): void {
  for (const [partition, offset] of Object.entries(earlier.report.high_water))
    expect(Number(report.high_water[partition]), 'the place in the log').to.be.at.least(Number(offset));
}

function placeOf({ high_water }: UsageReport): Map<number, bigint> {
  return new Map(Object.entries(high_water).map(([partition, offset]) => [Number(partition), BigInt(offset)]));
}

/** A fifth of each batch was sent before, some of it with another content. */
function sentBefore(events: readonly ModelEvent[], chance: Chance): ModelEvent[] {
  return Array.from({ length: events.length === 0 ? 0 : PER_BATCH / 5 }, () => {
    const known = chance.pick(events);
    return chance.next() < 0.5 ? known : randomEvent(chance, known.event_id);
  });
}

type Recurring = {
  readonly meter: number;
  readonly hour: number;
  readonly start: number;
  readonly question: Omit<ModelQuestion, 'start' | 'end'>;
};

function dashboardOf(chance: Chance): Recurring[] {
  return Array.from({ length: DASHBOARD }, () => {
    const meter = chance.pick(REMEMBERED);
    const start = FIRST + chance.whole(0, 24) * HOUR + chance.pick([0, 0, 1_234_567]);
    const hour = FIRST + chance.whole(2, DAYS) * 24 * HOUR + chance.pick([0, 7]) * HOUR;
    const window_size = windowOf(AGGREGATIONS[meter]!, chance);
    const size = window_size === '15MIN' || window_size === 'HOUR' ? 'DAY' : window_size;
    const customers = chance.pick([['acme'], ['globex']]);
    return { meter, hour, start, question: { customers, timezone: chance.pick(ZONES), window_size: size } };
  });
}

/** Distinct values are never kept. */
const REMEMBERED = AGGREGATIONS.flatMap(({ type }, index) => (type === 'COUNT_UNIQUE' ? [] : [index]));

async function askOne(metering: Metering, chance: Chance, of?: Recurring | { meter: number }): Promise<Asked> {
  const { stores } = metering;
  if (of && 'question' in of) return askAgain(metering, chance, of);
  const meter = of?.meter ?? chance.whole(0, AGGREGATIONS.length - 1);
  const step = chance.pick([1, 60_000, HOUR, 24 * HOUR]);
  const at = () =>
    Math.floor((FIRST + chance.whole(-12, (DAYS + 1) * 24) * HOUR + chance.whole(0, HOUR)) / step) * step;
  const [start, end] = [at(), at()].sort((a, b) => a - b) as [number, number];
  const question: ModelQuestion = {
    start: new Date(start).toISOString(),
    end: new Date(end + step).toISOString(),
    customers: chance.pick([undefined, ['acme'], CUSTOMERS]),
    timezone: chance.pick(ZONES),
    window_size: windowOf(AGGREGATIONS[meter]!, chance),
  };
  // A range that ends now: what lies beyond it has just arrived, and is asked for together with who else asks.
  return askedOf(stores, { meter, question, ...(chance.next() < 0.5 ? { now_ms: end + step } : {}) });
}

function askAgain({ stores }: Metering, chance: Chance, { meter, hour, start, question }: Recurring): Promise<Asked> {
  const end = hour + chance.whole(0, 3 * HOUR - 1);
  const range = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
  return askedOf(stores, { meter, question: { ...question, ...range }, now_ms: end });
}

async function askedOf(
  stores: Stores,
  { meter, question, ...now }: { meter: number; question: ModelQuestion; now_ms?: number },
): Promise<Asked> {
  const report = await readUsageReport(stores, SCOPE, {
    meter: { id: `m${meter}` },
    external_customer_ids: question.customers ?? null,
    start_us: Date.parse(question.start) * 1000,
    end_us: Date.parse(question.end) * 1000,
    timezone: question.timezone,
    window_size: question.window_size,
    ...now,
  });
  const behind = new Map((await readProgress(stores.postgres)).map((state) => [state.partition, laterOf(state)]));
  return { meter, question, report, behind };
}

/** A meter with windows of its own is asked for days at most. */
function windowOf({ bucket_size }: ModelMeter['aggregation'], chance: Chance): ModelWindow | undefined {
  return bucket_size ? chance.pick([undefined, 'DAY'] as const) : chance.pick(WINDOWS);
}

/** A slice that is being written may be in the rows already. */
function laterOf({ next_offset, slice_to }: { next_offset: bigint; slice_to: bigint | null }): bigint {
  return slice_to !== null && slice_to > next_offset ? slice_to : next_offset;
}

async function placesOf(metering: Metering, events: readonly ModelEvent[]): Promise<Placed[]> {
  const rows = await metering.rows<{ event_id: string; partition: number; offset: string }>(
    'select event_id, partition, toString(offset) as offset from events',
  );
  const places = new Map(rows.map((row) => [row.event_id, row]));
  expect(places.size).to.equal(events.length);
  return events.map((event) => {
    const { partition, offset } = places.get(event.event_id)!;
    return { event, partition, offset: BigInt(offset) };
  });
}

/** Offsets of the partitions, from those that the answer names on, at which the model says the same. */
function placeThatExplains(
  { meter, question, report, behind }: Asked,
  placed: readonly Placed[],
): bigint[] | undefined {
  const told = { value: report.usage[0]!.total.value.toFixed(), event_count: report.usage[0]!.total.event_count };
  const windows = report.usage[0]!.windows.map(({ window_us, value, event_count }) => ({
    start: instantText(BigInt(window_us)),
    value: value.toFixed(),
    event_count,
  }));
  const wanted = JSON.stringify({ ...told, windows });
  for (const place of placesBetween(report.high_water, behind, placed)) {
    const before = placed.filter(({ partition, offset }) => offset < place[partition]!).map(({ event }) => event);
    const model = usageByModel({ event_name: 'call', aggregation: AGGREGATIONS[meter]! }, before, question);
    if (JSON.stringify(shown(model)) === wanted) return place;
  }
  return undefined;
}

function shown({ value, event_count, windows }: ModelUsage) {
  return { value, event_count, windows };
}

function placesBetween(
  from: Readonly<Record<string, string>>,
  to: ReadonlyMap<number, bigint>,
  placed: readonly Placed[],
): bigint[][] {
  let places: bigint[][] = [[]];
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const first = BigInt(from[partition] ?? 0);
    const last = to.get(partition) ?? first;
    const between = placed.filter((each) => each.partition === partition && each.offset >= first && each.offset < last);
    const offsets = [first, ...new Set(between.map(({ offset }) => offset + 1n))];
    places = places.flatMap((place) => offsets.map((offset) => [...place, offset]));
  }
  return places;
}

function randomEvent(chance: Chance, event_id: string): ModelEvent {
  const ms = FIRST + (chance.next() < 0.2 ? chance.whole(0, DAYS * 24) * HOUR : chance.whole(0, DAYS * 24 * HOUR));
  return {
    event_id,
    event_name: 'call',
    external_customer_id: chance.pick(CUSTOMERS),
    timestamp: new Date(ms).toISOString(),
    properties: {
      n: chance.pick<() => unknown>([
        () => chance.whole(-50, 500),
        () => `${chance.whole(0, 99)}.${chance.whole(0, 9_999)}`,
        () => chance.pick(['abc', null, '12345678901234567890.000000000000000001']),
      ])(),
      host: chance.pick(['h1', 'h2', 3, '3', true, null]),
    },
  };
}
