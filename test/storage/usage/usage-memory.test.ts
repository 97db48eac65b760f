/**
 * Usage that is kept in memory: who asks again is answered without a statement, and by nothing that Postgres has not committed.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { pino } from 'pino';
import { requestCorrection } from '../../../actions/events/request-correction.ts';
import { planSegments, withEdges } from '../../../core/analytics/segments.ts';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import type { BucketRow } from '../../../core/metering/plan.ts';
import { US_PER_HOUR } from '../../../core/time/instant.ts';
import { startPipeline } from '../../../pipeline/pipeline.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { rebuildsFrom, type SliceState } from '../../../storage/progress/slice-state.ts';
import { finished } from '../../../storage/turns.ts';
import type { BucketQuestion, Inside } from '../../../storage/usage/bucket-cells.ts';
import { UsageMemory } from '../../../storage/usage/usage-memory.ts';
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
      usage_memory: new UsageMemory(),
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
    const types = { m_sum: 'SUM', m_max: 'MAX', m_latest: 'LATEST' } as const;
    for (const [id, type] of Object.entries(types)) await metering.announce(id, meterOf('n', type));
    await metering.settled();
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
    await metering.settled();
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
    await metering.settled();
  };
  /** The three values, and how many statements it took. */
  const ask = async (to: string, from = '2026-03-01T00:00:00Z') => {
    statements = 0;
    const values: string[] = [];
    for (const meter of ['m_sum', 'm_max', 'm_latest']) values.push(await metering.usage(meter, 'acme', [from, to]));
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

  it('is asked for anew in another hour, and after a correction', async () => {
    expect(await ask('2026-03-10T11:30:00Z')).to.equal('15 7 5, 3 statements');
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
    const range = ['2026-03-01T00:00:00Z', '2026-03-10T11:35:00Z'] as const;
    const answer = metering.usage('m_sum', 'acme', range);
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
    await metering.settled();
    expect(await ask('2026-03-10T11:31:00Z')).to.match(/^20 7 2/);
    await send('11:20:00', 4);
    expect(await ask('2026-03-10T11:32:00Z')).to.equal('28 7 4, 0 statements');
    await metering.announce('m_sum', null);
    await metering.settled();
    await send('11:21:00', 3);
    expect(await ask('2026-03-10T11:33:00Z')).to.match(/^28 7 3/);
  });

  it('says nothing where another process did the work', async () => {
    await ask('2026-03-10T11:34:00Z');
    await metering.pause();
    const others = { ...metering.stores, usage_memory: undefined };
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
});

const FIRST_US = Date.parse('2026-03-10T10:00:00Z') * 1000;
const METER = compileMeter({
  id: 'm',
  event_name: 'call',
  filters: [],
  aggregation: { type: 'COUNT' },
  reset_usage: 'NEVER',
});

type Step =
  | { do: 'write'; partition: number; length: number; counts: number[]; version: number }
  | { do: 'commit' | 'take over'; partition: number }
  | { do: 'rebuild'; of: 'acme' | 'another' | 'somebody, untold' }
  | { do: 'ask'; late: boolean };

describe('the memory of usage', () => {
  const partition = fc.nat(1);
  const counts = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 3 });
  const version = fc.constantFrom(1, 1, 2);
  const length = fc.integer({ min: 1, max: 2 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), partition, length, counts, version }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('commit' as const), partition }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('take over' as const), partition }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('rebuild' as const),
        of: fc.constantFrom('acme' as const, 'another' as const, 'somebody, untold' as const),
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('ask' as const), late: fc.boolean() }) },
  );

  it('says what was committed, or nothing, whatever happens in whichever order', async () => {
    let answers = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 80 }), async (steps) => {
        const world = await World.open();
        for (const one of steps) {
          const found = world.take(one);
          if (found === null) continue;
          answers++;
          expect(found.told).to.equal(found.committed);
        }
      }),
      { numRuns: 1_000 },
    );
    expect(answers).to.be.greaterThan(1_000);
  });
});

/** Two partitions, one question, and what a store would hold. */
class World {
  readonly #memory = new UsageMemory();
  readonly #question: BucketQuestion;
  readonly #inside: Inside;
  #progress: SliceState[] = [0, 1].map((partition) => ({ ...IDLE, partition }));
  #before = this.#progress;
  #committed = 0;
  #rebuilt = 0;
  readonly #written = new Map<number, { to: bigint; count: number }>();

  static async open(): Promise<World> {
    const range = { start_us: FIRST_US - 5 * US_PER_HOUR, end_us: FIRST_US + US_PER_HOUR / 2 };
    const asked = { ...range, grid: { timezone: 'UTC', billing_anchor: null } };
    const plan = await finished(planSegments(METER, asked), undefined);
    return new World({
      ...SCOPE,
      meter: METER,
      meter_version: 1,
      external_customer_ids: ['acme'],
      by_customer: false,
      plan: withEdges(plan),
      extra_uniques: [],
    });
  }

  constructor(question: BucketQuestion) {
    this.#question = question;
    this.#inside = [question.plan.segments[0]!.start_us, question.plan.segments[0]!.end_us];
  }

  /** What the memory tells and what was committed, where it tells anything. */
  take(step: Step): { told: number; committed: number } | null {
    if (step.do === 'ask') return this.#ask(step.late);
    if (step.do === 'rebuild') return this.#rebuild(step.of);
    const { partition } = step;
    const state = this.#progress[partition]!;
    const written = this.#written.get(partition);
    if (step.do === 'take over') {
      // Of what we had written another worker has committed its own, of which we are not told.
      if (written) this.#committed += 100 + written.count;
      this.#written.delete(partition);
      this.#move(partition, ({ epoch, next_offset }) => ({
        epoch: epoch + 1n,
        next_offset: written?.to ?? next_offset,
      }));
    } else if (step.do === 'write') {
      const to = state.next_offset + BigInt(step.length);
      const rows = step.counts.map((count, index) => rowOf(count, FIRST_US - index * US_PER_HOUR));
      const held = { partition, epoch: state.epoch };
      this.#memory.coming({ held, from: state.next_offset, to, rows, versionOf: () => step.version });
      const count = step.version === 1 ? step.counts.reduce((sum, one) => sum + one, 0) : 0;
      this.#written.set(partition, { to, count });
    } else if (written) {
      this.#committed += written.count;
      this.#written.delete(partition);
      this.#move(partition, () => ({ next_offset: written.to }));
    }
    return null;
  }

  #rebuild(of: string): null {
    if (of !== 'another') this.#rebuilt += 1000;
    const customers = new Map([['m', new Set([of])]]);
    if (of !== 'somebody, untold') this.#memory.comingRebuild({ ...rebuildsFrom(this.#progress), customers });
    this.#before = this.#progress;
    this.#progress = this.#progress.map((state) => ({ ...state, rebuilds: state.rebuilds + 1n }));
    return null;
  }

  #move(partition: number, change: (state: SliceState) => Partial<SliceState>): void {
    this.#before = this.#progress;
    this.#progress = this.#progress.map((state) =>
      state.partition === partition ? { ...state, ...change(state) } : state,
    );
  }

  /** A late one asks as of a progress that was read a step earlier. */
  #ask(isLate: boolean): { told: number; committed: number } | null {
    const progress = isLate ? this.#before : this.#progress;
    const found = this.#memory.find(this.#question, this.#inside, progress);
    if (found && progress === this.#progress) {
      const told = found.cells.reduce((sum, { bucket }) => sum + bucket.count, 0);
      return { told, committed: this.#committed + this.#rebuilt };
    }
    if (!found && !isLate) this.#keep();
    return null;
  }

  #keep(): void {
    const bucket = UsageBucket.of({ ...NOTHING, count: this.#committed + this.#rebuilt });
    const segment_us = this.#question.plan.segments[0]!.start_us;
    const place = { segment_us, window_us: 0, group_key: '', customer: '', counted_uniques: null };
    const ends = { first_us: FIRST_US, last_us: FIRST_US };
    const stored = { cells: [{ ...place, bucket }], beyond: { start: false, end: false }, ends };
    this.#memory.keep(this.#question, { inside: this.#inside, progress: this.#progress, stored });
  }
}

const NOTHING = { count: 0, sum: 0n, weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };

const IDLE: SliceState = {
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

function rowOf(count: number, bucket_start_us: number): BucketRow {
  const place = { ...SCOPE, meter_id: 'm', external_customer_id: 'acme', size: 'HOUR', group_key: '' } as const;
  return { ...NOTHING, ...place, count, bucket_start_us, first_us: bucket_start_us, last_us: bucket_start_us };
}
