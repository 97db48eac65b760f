/** The law of running lines: whatever is told, committed, lost or rebuilt in whichever order, a line that is not lost is what was committed. */
import { expect } from 'chai';
import fc from 'fast-check';
import { US_PER_HOUR } from '../../../core/foundation/time/instant.ts';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import type { PartitionProgress } from '../../../storage/progress/partition-progress.ts';
import { LiveUsagePeriod } from '../../../storage/usage/live-usage.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';

const METER = compileMeter({ event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } } as never);
const SCOPE = { tenant_id: 't', environment_id: 'e' };
const CUSTOMERS = ['acme', 'bolt'];

type Happening =
  | {
      readonly kind: 'event';
      readonly customer: string;
      readonly at_us: number;
      readonly n: number;
      readonly end: 'commits' | 'fails' | 'is another’s';
    }
  | { readonly kind: 'rebuild'; readonly customer: string }
  | { readonly kind: 'watch'; readonly customer: string; readonly start_us: number; readonly end_us: number }
  | { readonly kind: 'look' };

const place = fc.integer({ min: 0, max: 6 * US_PER_HOUR });
const customer = fc.constantFrom(...CUSTOMERS);
const HAPPENING: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    kind: fc.constant('event' as const),
    customer,
    at_us: place,
    n: fc.integer({ min: 1, max: 9 }),
    end: fc.constantFrom(
      'commits' as const,
      'commits' as const,
      'commits' as const,
      'fails' as const,
      'is another’s' as const,
    ),
  }),
  fc.record({ kind: fc.constant('watch' as const), customer, start_us: place, end_us: place }),
  fc.record({ kind: fc.constant('rebuild' as const), customer }),
  fc.constant({ kind: 'look' as const }),
);

describe('running lines', () => {
  it('are what was committed, or are lost', () => {
    let [compared, lost] = [0, 0];
    fc.assert(
      fc.property(fc.array(HAPPENING, { maxLength: 40 }), (happenings) => {
        const world = new Committed();
        for (const happening of happenings) {
          world.do(happening);
          for (const { line, customer: whose } of world.lines) {
            if (line.is_lost) lost++;
            else {
              compared++;
              expect(line.answer.quantity.toNumber()).to.equal(world.sumOf(whose, line));
            }
          }
        }
      }),
      { numRuns: 1_500 },
    );
    expect(compared).to.be.above(1_000);
    expect(lost).to.be.above(100);
  });
});

describe('a running line', () => {
  const [start_us, end_us] = [2 * US_PER_HOUR, 4 * US_PER_HOUR];
  type Taken = 'nothing' | 'all of it' | 'lost';
  const rows: [what: string, first_us: number | null, last_us: number | null, taken: Taken][] = [
    ['within it', start_us, end_us - 1, 'all of it'],
    ['that ends before it', start_us - 9, start_us - 1, 'nothing'],
    ['that begins at its end', end_us, end_us + 9, 'nothing'],
    ['that its begin cuts', start_us - 1, start_us, 'lost'],
    ['that its end cuts', end_us - 1, end_us, 'lost'],
    ['that goes beyond both of its ends', start_us - 1, end_us, 'lost'],
    ['of which the first event is not known', null, start_us, 'lost'],
    ['of which the last event is not known', start_us, null, 'lost'],
  ];
  const lineOf = () =>
    new LiveUsagePeriod({
      ...SCOPE,
      query: { meter: METER, external_customer_ids: ['acme'], start_us, end_us },
      meter: METER,
      meter_version: 1,
      has_buckets: true,
      adds_rows: true,
      cells: [],
      progress: null,
    });
  for (const [what, first_us, last_us, taken] of rows)
    it(`takes of a row ${what}: ${taken}`, () => {
      const line = lineOf();
      line.take({ ...rowOf('acme', start_us, 7), first_us, last_us }, 1);
      expect([line.is_lost, line.answer.quantity.toNumber()]).to.deep.equal([
        taken === 'lost',
        taken === 'all of it' ? 7 : 0,
      ]);
    });

  it('is lost with a row of another version of its meter', () => {
    const line = lineOf();
    line.take(rowOf('acme', start_us, 7), 2);
    expect(line.is_lost).to.equal(true);
  });
});

/** What Postgres says, and a memory beside it. */
class Committed {
  readonly memory = new UsageCache();
  readonly lines: { customer: string; line: LiveUsagePeriod }[] = [];
  #events: { customer: string; at_us: number; n: number }[] = [];
  #offset = 0n;
  #rebuilds = 0n;
  #epoch = 1n;

  get #progress(): PartitionProgress[] {
    const { 0: at } = [{ partition: 0, epoch: this.#epoch, next_offset: this.#offset, rebuilds: this.#rebuilds }];
    return [at as PartitionProgress];
  }

  sumOf(whose: string, { start_us, end_us }: Pick<LiveUsagePeriod, 'start_us' | 'end_us'>): number {
    const those = this.#events.filter(({ customer: of, at_us }) => of === whose && at_us >= start_us && at_us < end_us);
    return those.reduce((sum, { n }) => sum + n, 0);
  }

  do(happening: Happening): void {
    // The memory believes what is committed when it is looked at.
    if (happening.kind === 'event') this.#event(happening);
    if (happening.kind === 'rebuild') this.#rebuild(happening.customer);
    this.memory.follow(this.#progress);
    if (happening.kind === 'watch') this.#watch(happening);
  }

  #event({ customer: whose, at_us, n, end }: Extract<Happening, { kind: 'event' }>): void {
    const rows = [rowOf(whose, at_us, n)];
    const [from, to] = [this.#offset, this.#offset + 1n];
    const held = { partition: 0, epoch: this.#epoch };
    if (end !== 'is another’s')
      this.memory.announceSlice({ owned_partition: held, from, to, rows, getVersion: () => 1 });
    if (end === 'fails') return;
    if (end === 'is another’s') this.#epoch += 1n;
    this.#events.push({ customer: whose, at_us, n });
    this.#offset = to;
  }

  /** One event of the customer is voided. */
  #rebuild(whose: string): void {
    const [before, after] = [this.#rebuilds, this.#rebuilds + 1n];
    this.memory.announceRebuild({ before, after, customers: new Map([[METER.id, new Set([whose])]]) });
    this.#rebuilds = after;
    const at = this.#events.findIndex(({ customer: of }) => of === whose);
    if (at >= 0) this.#events = this.#events.filter((_event, index) => index !== at);
  }

  #watch({ customer: whose, start_us, end_us }: Extract<Happening, { kind: 'watch' }>): void {
    if (start_us >= end_us) return;
    const watcher = { onRow: () => {}, invalidate: () => {} };
    const subject = this.memory.running.watch(watcher, METER.id, whose);
    const bucket = new UsageBucket();
    for (const { customer: of, at_us, n } of this.#events)
      if (of === whose && at_us >= start_us && at_us < end_us) bucket.combine(UsageBucket.of(rowOf(whose, at_us, n)));
    const cell = { key: '', segment_us: start_us, window_us: 0, group_key: '', bucket, counted_uniques: null };
    const asked = { meter: METER, external_customer_ids: [whose], start_us, end_us };
    if (!this.memory.isAt(this.#progress)) return;
    const read = {
      ...SCOPE,
      query: asked,
      meter: METER,
      meter_version: 1,
      has_buckets: true,
      adds_rows: true,
      cells: [cell],
      progress: null,
    };
    const line = this.memory.running.findPeriod(subject, read);
    if (line) this.lines.push({ customer: whose, line });
  }
}

function rowOf(external_customer_id: string, at_us: number, n: number): BucketRow {
  const bucket_start_us = Math.floor(at_us / US_PER_HOUR) * US_PER_HOUR;
  const of = {
    ...SCOPE,
    meter_id: METER.id,
    external_customer_id,
    group_key: '',
    size: 'HOUR' as const,
    bucket_start_us,
  };
  const nothing = { weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };
  return { ...of, ...nothing, first_us: at_us, last_us: at_us, count: 1, sum: BigInt(n) * 10n ** 24n };
}
