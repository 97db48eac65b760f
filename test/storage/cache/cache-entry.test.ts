/** How long an answer that is kept holds (docs/decisions/0007-cached-answers.md): to the instant, the look and the row at which it does no more. */
import { expect } from 'chai';
import { toUs } from '../../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import { CacheEntry, type ComputedAnswer } from '../../../storage/cache/cache-entry.ts';
import type { ChangeSnapshot } from '../../../storage/cache/change-feed.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';

const METER = compileMeter({
  id: 'meter_1',
  event_name: 'call',
  filters: [],
  aggregation: { type: 'COUNT' },
  reset_usage: 'NEVER',
});
const SCOPE = { tenant_id: 't', environment_id: 'e' };
const PLAN = 'plan_01JZ0000000000000000000000';

const ms = (text: string) => Date.parse(`2026-01-10T${text}Z`);
const NOW = ms('12:00:00');

function lookOf(number: number, { known_since = 1, changed = {} as Record<string, number> } = {}): ChangeSnapshot {
  const seen = new Map(Object.entries(changed));
  const last_change = Math.max(0, ...seen.values());
  return { number, known_since, last_change, changed: seen, changed_by_others: seen, progress: [] };
}

describe('an answer that is kept', () => {
  /** Made in look 5, of what a customer has used. */
  function making() {
    const memory = new UsageCache();
    const kept = new CacheEntry({ scope: SCOPE, key: `k ${PLAN}`, snapshot: lookOf(5), now: new Date(NOW) }, memory);
    const asked = {
      meter: METER,
      external_customer_ids: ['acme'],
      start_us: toUs(ms('00:00:00')),
      end_us: toUs(ms('23:00:00')),
    };
    kept.recordUsageQuery(SCOPE.tenant_id, SCOPE.environment_id, asked);
    const arrives = (text: string) => memory.running.take([rowAt(toUs(ms(text)))], () => 1);
    return { kept, arrives };
  }
  function made({ until_ms, late_before_ms, again }: Partial<ComputedAnswer<unknown>> = {}) {
    const { kept, arrives } = making();
    const answer = {
      answer: 1,
      ...(until_ms && { until_ms }),
      ...(late_before_ms && { late_before_ms }),
      ...(again && { again }),
    };
    expect(kept.complete(answer)).to.equal(true);
    return { kept, arrives };
  }

  it('holds from its own instant on', () => {
    const { kept } = made();
    expect([NOW - 1, NOW, ms('23:59:59')].map((now) => kept.isFresh(lookOf(5), now))).to.deep.equal([
      false,
      true,
      true,
    ]);
  });

  it('until the one that it was told, and not at it', () => {
    const { kept } = made({ until_ms: ms('13:00:00') });
    const at = [ms('12:59:59.999'), ms('13:00:00'), ms('13:00:00.001')];
    expect(at.map((now) => kept.isFresh(lookOf(5), now))).to.deep.equal([true, false, false]);
    expect(at.map((now) => kept.isOver(now))).to.deep.equal([false, true, true]);
  });

  it('or the first that a row which it read has ahead of it', () => {
    const { kept } = making();
    kept.row({ ended_at: '2026-01-10T11:00:00Z', starts_at: '2026-01-10T14:00:00Z', ends_at: '2026-01-10T18:00:00Z' });
    expect(kept.complete({ answer: 1, until_ms: ms('16:00:00') })).to.equal(true);
    const at = [ms('13:59:59.999'), ms('14:00:00')];
    expect(at.map((now) => kept.isFresh(lookOf(5), now))).to.deep.equal([true, false]);
  });

  it('not where changes were forgotten that it may not have seen', () => {
    const { kept } = made();
    expect(kept.isFresh(lookOf(9, { known_since: 5 }), NOW)).to.equal(true);
    expect(kept.isFresh(lookOf(9, { known_since: 6 }), NOW)).to.equal(false);
  });

  it('not behind a look that saw a record of it changed, and behind those of others', () => {
    const before = made().kept;
    expect(before.isFresh(lookOf(6, { changed: { [PLAN]: 5, another: 6 } }), NOW)).to.equal(true);
    expect(before.isFresh(lookOf(7, { changed: { [PLAN]: 7 } }), NOW)).to.equal(false);
  });

  const again = () => 2;

  it('what comes late for what is over ends it, and what comes for what runs is taken in', () => {
    const late_before_ms = ms('06:00:00') as ComputedAnswer<unknown>['late_before_ms'];
    const running = made({ late_before_ms, again });
    running.arrives('06:00:00');
    expect(running.kept.isFresh(lookOf(5), NOW)).to.equal(true);
    running.arrives('05:59:59.999');
    expect(running.kept.isFresh(lookOf(5), NOW)).to.equal(false);
  });

  it('where that came while it was made it is not kept', () => {
    const complete = (came: string) => {
      const { kept, arrives } = making();
      arrives(came);
      return kept.complete({ answer: 1, late_before_ms: ms('06:00:00') as never, again });
    };
    expect([complete('06:00:00'), complete('05:59:59.999')]).to.deep.equal([true, false]);
  });

  it('what came between its readings is in what is answered next', () => {
    const { kept, arrives } = making();
    arrives('10:00:00');
    expect(kept.complete({ answer: 1, again })).to.equal(true);
    expect([kept.current(), made({ again }).kept.current()]).to.deep.equal([2, 1]);
  });

  it('any usage ends one that cannot be made again of what arrives', () => {
    const { kept, arrives } = made();
    arrives('10:00:00');
    expect(kept.isFresh(lookOf(5), NOW)).to.equal(false);
  });
});

function rowAt(at_us: number): BucketRow {
  const place = { ...SCOPE, meter_id: METER.id, external_customer_id: 'acme', size: 'HOUR', group_key: '' } as const;
  const values = { count: 1, sum: 0n, weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };
  return { ...place, ...values, bucket_start_us: at_us, first_us: at_us, last_us: at_us };
}
