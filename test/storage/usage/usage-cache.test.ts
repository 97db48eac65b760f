/**
 * Usage that is kept in memory: who asks again is answered without a statement, and by nothing that Postgres has not committed.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { pino } from 'pino';
import { requestCorrection } from '../../../actions/metering/events/request-correction.ts';
import { US_PER_HOUR } from '../../../core/foundation/time/instant.ts';
import { planSegments, useEdgeBuckets } from '../../../core/metering/analytics/segments.ts';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import { startPipeline } from '../../../pipeline/pipeline.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { runYielding } from '../../../storage/concurrency/time-slicer.ts';
import { computeRebuildRange, type PartitionProgress } from '../../../storage/progress/partition-progress.ts';
import { type BucketQuery, type EventRange, NO_ENDS, planEnd } from '../../../storage/usage/bucket-cells.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { type StatementWay, statementsTo } from '../../faults/statements.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';
import { until } from '../../support/until.ts';

describe('usage that is kept in memory', () => {
  let metering: Metering;
  let way: StatementWay;
  let statements = 0;
  let sent = 0;

  before(async () => {
    metering = await startMetering({
      usage_cache: new UsageCache(),
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
    const types = { m_sum: 'SUM', m_max: 'MAX', m_latest: 'LATEST' } as const;
    for (const [id, type] of Object.entries(types)) await metering.announce(id, meterOf('n', type));
    await metering.waitForPipeline();
    await send('10:05:00', 1);
    countStatements();
  });
  after(async () => {
    await metering.stop();
    await way.close();
  });

  const countStatements = () => {
    way.meet(({ text }) => {
      if (/from usage_buckets|select external_customer_id, event_id, /i.test(text)) statements++;
      return undefined;
    });
  };
  const voided = async (event_id: string) => {
    const asked = { event_id, action: 'void', replacement: null, reason: 'wrong', user_id: 'user_a' } as const;
    await requestCorrection(metering.stores, SCOPE, { ...asked, now: new Date() });
    await metering.waitForPipeline();
  };
  const meterOf = (field: string, type: 'SUM' | 'MAX' | 'LATEST' = 'SUM') => ({
    event_name: 'call',
    filters: [],
    aggregation: { type, field },
  });
  const send = async (time: string, n: number, { day = '10', customer = 'acme' } = {}) => {
    const timestamp = `2026-03-${day}T${time}Z`;
    const event = { event_name: 'call', external_customer_id: customer, timestamp, properties: { n, twice: 2 * n } };
    await metering.send([{ event_id: `e${++sent}`, ...event }]);
    await metering.waitForPipeline();
  };
  /** As of its end. */
  const usage = async (meter: string, from: string, to: string) => {
    const [start, end] = [Date.parse(from), Date.parse(to)];
    const range = { start_us: start * 1000, end_us: end * 1000, now_ms: end };
    const asked = { meter: { id: meter }, external_customer_ids: ['acme'], ...range };
    return (await readUsageReport(metering.stores, SCOPE, asked)).usage[0]!.total.value.toFixed();
  };
  /** The three values, and how many statements it took. */
  const ask = async (to: string, from = '2026-03-01T00:00:00Z') => {
    statements = 0;
    const values: string[] = [];
    for (const meter of ['m_sum', 'm_max', 'm_latest']) values.push(await usage(meter, from, to));
    return `${values.join(' ')}, ${statements} statements`;
  };

  it('is read once, and brought forward by whatever arrives', async () => {
    expect(await ask('2026-03-10T10:30:00Z')).to.equal('1 1 1, 3 statements');
    expect(await ask('2026-03-10T10:31:00Z')).to.equal('1 1 1, 0 statements');
    await send('10:20:00', 5);
    await send('10:10:00', 2);
    await send('23:00:00', 7, { day: '02' });
    await send('10:20:30', 100, { customer: 'other' });
    await send('10:59:59', 1000, { day: '11' });
    expect(await ask('2026-03-10T10:32:00Z')).to.equal('15 7 5, 0 statements');
  });

  it('answers each end of the hour by what lies before it', async () => {
    // What adds up needs the events beyond only; of a greatest or latest value the hour is read.
    expect(await ask('2026-03-10T10:15:00Z')).to.match(/^10 7 2, [1-9] statements$/);
    expect(await ask('2026-03-10T10:20:00.001Z')).to.equal('15 7 5, 0 statements');
  });

  it('goes on in the next hour, with what came of it before, and is asked for anew after a correction', async () => {
    expect(await ask('2026-03-10T11:30:00Z')).to.equal('15 7 5, 0 statements');
    await voided('e2');
    expect(await ask('2026-03-10T11:30:00Z')).to.equal('10 7 2, 3 statements');
    expect(await ask('2026-03-10T11:30:01Z')).to.equal('10 7 2, 0 statements');
  });

  it('stays through a correction of somebody else’s event', async () => {
    await voided('e5');
    expect(await ask('2026-03-10T11:30:02Z')).to.equal('10 7 2, 0 statements');
  });

  it('is not that of before a correction, where events beyond the end are those of after it', async () => {
    await send('11:40:00', 30);
    expect(await ask('2026-03-10T11:45:00Z')).to.equal('40 30 30, 0 statements');
    way.meet(({ text }) => (/select external_customer_id, event_id, /i.test(text) ? 'held' : undefined));
    const answer = usage('m_sum', '2026-03-01T00:00:00Z', '2026-03-10T11:35:00Z');
    await until('the events beyond are asked for', async () => way.waiting > 0);
    way.meet(undefined);
    const corrected = voided('e7');
    await until('the event is voided', async () => (await metering.rows('select 1 from event_corrections')).length > 2);
    await way.release();
    expect(await answer).to.equal('10');
    await corrected;
    countStatements();
    expect(await ask('2026-03-10T11:45:00Z')).to.match(/^10 7 2/);
  });

  it('is that of the version of the meter that counts', async () => {
    await metering.announce('m_sum', meterOf('twice'));
    await metering.waitForPipeline();
    expect(await ask('2026-03-10T11:31:00Z')).to.match(/^20 7 2/);
    await send('11:20:00', 4);
    expect(await ask('2026-03-10T11:32:00Z')).to.equal('28 7 4, 0 statements');
    await metering.announce('m_sum', null);
    await metering.waitForPipeline();
    await send('11:21:00', 3);
    expect(await ask('2026-03-10T11:33:00Z')).to.match(/^28 7 3/);
  });

  it('says nothing where another process did the work', async () => {
    await ask('2026-03-10T11:34:00Z');
    await metering.pause();
    const others = { ...metering.stores, usage_cache: undefined };
    const options = {
      owner: 'another',
      slice_events_max: 500,
      logger: pino({ level: 'silent' }),
      clock: () => new Date(),
    };
    const other = await startPipeline(others, options);
    await send('11:22:00', 50);
    await other.stop();
    expect(await ask('2026-03-10T11:34:00Z')).to.match(/^28 50 50, [1-9]/);
    await metering.resume();
    await send('11:23:00', 60);
    expect(await ask('2026-03-10T11:34:00Z')).to.match(/^28 60 60/);
  });

  it('adds the rows of a slice when it ends, before anybody reads the progress', async () => {
    const arrived: number[] = [];
    const watcher = {
      onRow: (_: unknown, first_us: number) => void arrived.push(first_us / 1000),
      invalidate: () => void arrived.push(Number.NaN),
    };
    const { running } = metering.stores.usage_cache!;
    const subject = running.watch(watcher, 'm_max', 'watched');
    await send('10:05:00', 1, { customer: 'watched' });
    running.leave(watcher, { meter_id: 'm_max', customer: 'watched' });
    expect(subject.watchers.size).to.equal(0);
    expect(arrived).to.deep.equal([Date.parse('2026-03-10T10:05:00Z')]);
  });
});

const FIRST_US = Date.parse('2026-03-10T10:00:00Z') * 1000;
const METER = compileMeter({
  id: 'm',
  event_name: 'call',
  filters: [],
  aggregation: { type: 'COUNT' },
  reset_usage: 'NEVER',
});

type Rows = readonly { readonly count: number; readonly hour: number }[];
type Step =
  | { do: 'write'; partition: number; length: number; rows: Rows; version: number }
  | { do: 'commit' | 'confirm' | 'take over'; partition: number }
  | { do: 'add a partition' }
  | { do: 'rebuild'; of: 'acme' | 'another' | 'somebody, untold' }
  | { do: 'ask'; late: number; until: Until };

/** Of the first hour on, and whether it is asked until its end, or until half past. */
type Until = { readonly hour: number; readonly is_ragged: boolean };

describe('the memory of usage', () => {
  const partition = fc.nat(2);
  const hour = fc.integer({ min: -2, max: 3 });
  const rows = fc.array(fc.record({ count: fc.integer({ min: 1, max: 9 }), hour }), { maxLength: 3 });
  const version = fc.constantFrom(1, 1, 2);
  const length = fc.integer({ min: 1, max: 2 });
  const late = fc.constantFrom(0, 0, 0, 0, 1, 2, 5);
  const until = fc.record({ hour: fc.nat(2), is_ragged: fc.boolean() });
  const of = fc.constantFrom('acme' as const, 'another' as const, 'somebody, untold' as const);
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), partition, length, rows, version }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('commit' as const), partition }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('confirm' as const), partition }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('take over' as const), partition }) },
    { weight: 1, arbitrary: fc.constant({ do: 'add a partition' as const }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('rebuild' as const), of }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('ask' as const), late, until }) },
  );

  it('forgets nobody for rebuilds of others, also of several between two questions', async () => {
    const memory = new UsageCache();
    const { question, event_range } = (await World.questions()).get('0, half past')!;
    const stored = { cells: [], outside: { start: false, end: false }, ends: NO_ENDS, has_later: false };
    const at = (rebuilds: bigint): PartitionProgress[] => [{ ...IDLE, rebuilds }];
    memory.find(question, event_range, at(0n));
    memory.cache(question, { event_range, progress: at(0n), stored });
    for (const before of [0n, 1n, 1n, 2n])
      memory.announceRebuild({ before, after: before + 1n, customers: new Map([['m', new Set(['another'])]]) });
    expect(memory.find(question, event_range, at(3n))?.cells).to.deep.equal([]);
    memory.announceRebuild({ before: 3n, after: 4n, customers: new Map([['m', null]]) });
    expect(memory.find(question, event_range, at(4n))).to.equal(null);
  });

  it('that is fed says nothing of a progress that it was not fed yet, and forgets nothing for being asked', async () => {
    const memory = new UsageCache({ isFed: true });
    const { question, event_range } = (await World.questions()).get('0, half past')!;
    const stored = { cells: [], outside: { start: false, end: false }, ends: NO_ENDS, has_later: false };
    memory.followFed([IDLE]);
    memory.cache(question, { event_range, progress: [IDLE], stored });
    const landed = [{ ...IDLE, next_offset: 2n }];
    const rebuilt = [{ ...landed[0]!, rebuilds: 1n }];
    const isToldAt = (progress: PartitionProgress[]) => [
      memory.find(question, event_range, progress) !== null,
      memory.isAt(progress),
    ];
    expect(isToldAt(landed)).to.deep.equal([false, false]);
    memory.announceSlice({ owned_partition: IDLE, from: 0n, to: 2n, rows: [], getVersion: () => 1 });
    memory.followFed(landed);
    expect(isToldAt(landed)).to.deep.equal([true, true]);
    expect(isToldAt(rebuilt)).to.deep.equal([false, false]);
    memory.announceRebuild({ before: 0n, after: 1n, customers: new Map([['m', new Set(['another'])]]) });
    memory.followFed(rebuilt);
    expect(isToldAt(rebuilt)).to.deep.equal([true, true]);
  });

  it('follows the other partitions while it is ahead in one', () => {
    const memory = new UsageCache();
    const both = [IDLE, { ...IDLE, partition: 1 }];
    memory.follow(both);
    const arrived: number[] = [];
    const watcher = {
      onRow: (_: unknown, at_us: number) => void arrived.push(at_us),
      invalidate: () => void arrived.push(Number.NaN),
    };
    memory.running.watch(watcher, 'm', 'acme');
    const slice = { from: 0n, to: 1n, getVersion: () => 1 };
    const [first, second] = [1, 3].map((hour) => rowOf({ count: 2, hour }));
    memory.announceSlice({ ...slice, owned_partition: both[0]!, rows: [first!] });
    memory.announceSlice({ ...slice, owned_partition: both[1]!, rows: [second!] });
    memory.confirmSlice({ ...both[0]!, next_offset: 1n });
    expect(arrived).to.deep.equal([first!.first_us]);
    // A read that began before the first slice ended and sees the second.
    const seen = [both[0]!, { ...both[1]!, next_offset: 1n }];
    expect(memory.isAt(seen)).to.equal(false);
    expect(arrived).to.deep.equal([first!.first_us, second!.first_us]);
    expect(memory.isAt(seen.map((state) => ({ ...state, next_offset: 1n })))).to.equal(true);
    // Postgres may show an end before its answer arrives, and an answer may arrive after another worker took over.
    memory.confirmSlice({ ...both[1]!, next_offset: 1n });
    memory.confirmSlice({ ...both[1]!, next_offset: 0n });
    memory.confirmSlice({ ...both[0]!, epoch: 0n, next_offset: 5n });
    expect(arrived).to.have.length(2);
  });

  it('tells nothing older than what rows have just answered', async () => {
    const memory = new UsageCache();
    const { question, event_range } = (await World.questions()).get('0, half past')!;
    const later = (await World.questions()).get('1, half past')!;
    const stored = { cells: [], outside: { start: false, end: false }, ends: NO_ENDS, has_later: false };
    for (const asked of [{ question, event_range }, later]) {
      memory.find(question, event_range, [IDLE]);
      memory.cache(question, { event_range, progress: [IDLE], stored });
      memory.discard(asked.question, asked.event_range);
      expect(memory.find(question, event_range, [IDLE])).to.equal(null);
    }
  });

  it('holds so much and no more, of one line, of one tenant and of all', async () => {
    const memory = new UsageCache();
    const { question, event_range } = (await World.questions()).get('0, half past')!;
    const progress = [IDLE];
    const stored = { cells: [], outside: { start: false, end: false }, ends: NO_ENDS, has_later: false };
    const keep = (changed: Partial<BucketQuery>) => {
      memory.find({ ...question, ...changed }, event_range, progress);
      memory.cache({ ...question, ...changed }, { event_range, progress, stored });
    };
    const isKept = (changed: Partial<BucketQuery>) =>
      memory.find({ ...question, ...changed }, event_range, progress) !== null;
    keep({ tenant_id: 'other', external_customer_ids: ['first'] });
    for (let customer = 0; customer < 20_000; customer++) keep({ external_customer_ids: [`c${customer}`] });
    expect(isKept({ tenant_id: 'other', external_customer_ids: ['first'] }), 'of another tenant').to.equal(true);
    expect(isKept({ external_customer_ids: ['c19999'] }), 'the last').to.equal(true);
    expect(isKept({ external_customer_ids: ['c0'] }), 'the first').to.equal(false);
    for (let version = 1; version <= 40; version++) keep({ meter_version: version });
    expect(isKept({ meter_version: 8 }), 'of one line').to.equal(false);
    expect(isKept({ meter_version: 9 })).to.equal(true);
  });

  it('says what was committed, or nothing, whatever happens in whichever order', async () => {
    let [answers, extended] = [0, 0];
    const worlds = await World.questions();
    fc.assert(
      fc.property(fc.array(step, { minLength: 30, maxLength: 80 }), (steps) => {
        const world = new World(worlds);
        for (const one of steps) {
          const found = world.take(one);
          if (found === null) continue;
          answers++;
          if (found.is_extended) extended++;
          expect(found.told).to.deep.equal(found.committed);
        }
      }),
      { numRuns: 2_000 },
    );
    expect(answers).to.be.greaterThan(2_000);
    expect(extended).to.be.greaterThan(100);
  });
});

type Asked = { readonly question: BucketQuery; readonly event_range: EventRange | undefined; readonly end_us: number };
type Told = { readonly count: number; readonly is_beyond: boolean };

/** Two partitions or three, questions until some ends, and what a store would hold. */
class World {
  readonly #memory = new UsageCache();
  readonly #questions: ReadonlyMap<string, Asked>;
  #progress: PartitionProgress[] = [0, 1].map((partition) => ({ ...IDLE, partition }));
  /** Each change before the last, and how much was committed then. */
  readonly #history: { progress: PartitionProgress[]; committed: number }[] = [];
  readonly #committed: BucketRow[] = [];
  readonly #written = new Map<number, { to: bigint; rows: readonly BucketRow[] }>();
  /** Last slice of each partition whose commit the server has answered, or is about to answer. */
  readonly #ended = new Map<number, PartitionProgress>();
  /** Ends that were read since everything was forgotten last, as far as can be seen from here. */
  readonly #read = new Set<string>();

  static async questions(): Promise<Map<string, Asked>> {
    const questions = new Map<string, Asked>();
    for (const hour of [0, 1, 2])
      for (const is_ragged of [true, false]) {
        const end_us = FIRST_US + (hour + (is_ragged ? 0.5 : 1)) * US_PER_HOUR;
        const range = { start_us: FIRST_US - 5 * US_PER_HOUR, end_us };
        const plan = await runYielding(
          planSegments(METER, { ...range, grid: { timezone: 'UTC', billing_anchor: null } }),
          undefined,
        );
        const question = {
          ...SCOPE,
          meter: METER,
          meter_version: 1,
          external_customer_ids: ['acme'],
          by_customer: false,
          plan: useEdgeBuckets(plan),
          extra_uniques: [],
        };
        questions.set(textOf({ hour, is_ragged }), {
          question,
          event_range: is_ragged ? [range.start_us, end_us] : undefined,
          end_us,
        });
      }
    return questions;
  }

  constructor(questions: ReadonlyMap<string, Asked>) {
    this.#questions = questions;
  }

  /** What the memory tells and what was committed, where it tells anything. */
  take(step: Step): { told: Told; committed: Told; is_extended: boolean } | null {
    if (step.do === 'ask') return this.#ask(step);
    const before = { progress: this.#progress, committed: this.#committed.length };
    this.#change(step);
    if (this.#progress !== before.progress) this.#history.push(before);
    return null;
  }

  #change(step: Exclude<Step, { do: 'ask' }>): void {
    if (step.do === 'rebuild') return this.#rebuild(step.of);
    if (step.do === 'add a partition') {
      if (this.#progress.length === 2) this.#progress = [...this.#progress, { ...IDLE, partition: 2 }];
      return;
    }
    const { partition } = step;
    const state = this.#progress[partition];
    if (!state) return;
    const written = this.#written.get(partition);
    if (step.do === 'confirm') {
      // Perhaps after another worker took over, or after a later progress was read.
      const ended = this.#ended.get(partition);
      if (ended) this.#memory.confirmSlice(ended);
    } else if (step.do === 'take over') {
      // Of what we had written another worker has committed its own, of which we are not told.
      if (written) this.#committed.push(...written.rows, rowOf({ count: 100, hour: 0 }));
      this.#written.delete(partition);
      this.#move(partition, { epoch: state.epoch + 1n, next_offset: written?.to ?? state.next_offset });
    } else if (step.do === 'write') {
      const to = state.next_offset + BigInt(step.length);
      const rows = step.rows.map(rowOf);
      const held = { partition, epoch: state.epoch };
      this.#memory.announceSlice({
        owned_partition: held,
        from: state.next_offset,
        to,
        rows,
        getVersion: () => step.version,
      });
      this.#written.set(partition, { to, rows: step.version === 1 ? rows : [] });
    } else if (written) {
      this.#committed.push(...written.rows);
      this.#written.delete(partition);
      this.#move(partition, { next_offset: written.to });
      this.#ended.set(partition, this.#progress[partition]!);
    }
  }

  #rebuild(of: string): void {
    if (of !== 'another') this.#committed.push(rowOf({ count: 1000, hour: -1 }));
    const customers = new Map([['m', new Set([of])]]);
    if (of !== 'somebody, untold') this.#memory.announceRebuild({ ...computeRebuildRange(this.#progress), customers });
    this.#progress = this.#progress.map((state) => ({ ...state, rebuilds: state.rebuilds + 1n }));
    this.#read.clear();
  }

  #move(partition: number, change: Partial<PartitionProgress>): void {
    this.#progress = this.#progress.map((state) => (state.partition === partition ? { ...state, ...change } : state));
  }

  /** A late one asks as of a progress that was read some changes earlier. */
  #ask({ late, until }: { late: number; until: Until }): { told: Told; committed: Told; is_extended: boolean } | null {
    const key = textOf(until);
    const asked = this.#questions.get(key)!;
    const now = { progress: this.#progress, committed: this.#committed.length };
    const { progress, committed } = [...this.#history, now].at(-1 - late) ?? now;
    const found = this.#memory.find(asked.question, asked.event_range, progress);
    const is_extended = !this.#read.has(key);
    const { told, stored } = this.#stored(asked, committed);
    if (found) {
      const count = found.cells.reduce((sum, { bucket }) => sum + bucket.count, 0);
      return { told: { count, is_beyond: found.outside.end }, committed: told, is_extended };
    }
    this.#read.add(key);
    this.#memory.cache(asked.question, { event_range: asked.event_range, progress, stored });
    return null;
  }

  /** As rows would answer. */
  #stored({ question: { plan }, event_range, end_us }: Asked, committed: number) {
    const end = planEnd(plan);
    const rows = this.#committed.slice(0, committed);
    const within = rows.filter((row) => row.bucket_start_us < end);
    const count = within.reduce((sum, row) => sum + row.count, 0);
    const edge = event_range ? within.filter((row) => row.bucket_start_us >= end - US_PER_HOUR) : [];
    const ends = {
      first_us: Math.min(...edge.map((row) => row.first_us!)),
      last_us: Math.max(...edge.map((row) => row.last_us!)),
      event_count: edge.reduce((sum, row) => sum + row.count, 0),
    };
    const beyond = { start: false, end: ends.last_us >= end_us };
    const place = {
      segment_us: plan.segments[0]!.start_us,
      window_us: 0,
      group_key: '',
      customer: '',
      counted_uniques: null,
    };
    const cells = count === 0 ? [] : [{ ...place, bucket: UsageBucket.of({ ...NOTHING, count }) }];
    const stored = { cells, outside: beyond, ends, has_later: rows.some((row) => row.bucket_start_us >= end) };
    return { told: { count, is_beyond: beyond.end }, stored };
  }
}

function textOf({ hour, is_ragged }: Until): string {
  return `${hour}, ${is_ragged ? 'half past' : 'its end'}`;
}

const NOTHING = { count: 0, sum: 0n, weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };

const IDLE: PartitionProgress = {
  partition: 0,
  epoch: 1n,
  next_offset: 0n,
  slice_from: null,
  slice_to: null,
  phase: 'idle',
  watermark_us: 0,
  last_record: null,
  gate: null,
  rebuilds: 0n,
  wide_slices: 0n,
  is_wide: false,
  days_before: 0,
};

/** Those with an odd count lie behind half past. */
function rowOf({ count, hour }: Rows[number]): BucketRow {
  const place = { ...SCOPE, meter_id: 'm', external_customer_id: 'acme', size: 'HOUR', group_key: '' } as const;
  const bucket_start_us = FIRST_US + hour * US_PER_HOUR;
  const at = bucket_start_us + (count % 2 === 1 ? 0.75 : 0.25) * US_PER_HOUR;
  return { ...NOTHING, ...place, count, bucket_start_us, first_us: at, last_us: at };
}
