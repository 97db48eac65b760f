/**
 * Computes the quantity of a line whose meter charges a level over time (docs/rules/metering.md, "Levels over time";
 * docs/rules/proration.md, "Usage over a change"): the integral over the interval of the line, divided by the length of the whole period.
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { type Microseconds, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import type { CountedLine } from '../../../core/invoicing/proof/record.ts';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../../core/metering/compiled-meter.ts';
import type { Contribution } from '../../../core/metering/contribution.ts';
import { QUANTITY_PLACES } from '../../../core/metering/quantity.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';

/** Interval of a line in which a level is integrated, and the length of the whole period. */
export type LevelTime = { readonly start_us: Microseconds; readonly end_us: Microseconds; readonly whole_us: number };

/** Finds the time over which the line's level was integrated; null for a line that is not charged by an integral. */
export function findLevelTime({
  computed_from,
  period_start,
}: Pick<InvoiceLineItemModel, 'computed_from' | 'period_start'>): LevelTime | null {
  const { chain, window_end } = computed_from ?? {};
  if (chain?.rule !== 'integral' || !period_start || !window_end) return null;
  return {
    start_us: toUs(toInstant(period_start)),
    end_us: toUs(toInstant(window_end)),
    whole_us: toUs(toInstant(chain.whole_end) - toInstant(chain.whole_start)),
  };
}

/** Levels of one customer up to the start of the interval, and up to its end. */
type LevelBuckets = { readonly before: UsageBucket; readonly until: UsageBucket };

export class LevelDigest {
  readonly #aggregation: CompiledMeter['aggregation'];
  readonly #time: LevelTime;
  readonly #ends: ReadonlyMap<string, Microseconds>;
  readonly #levels = new Map<string, LevelBuckets>();

  constructor({ aggregation }: CompiledMeter, time: LevelTime, { customers }: Pick<CountedLine, 'customers'>) {
    this.#aggregation = aggregation;
    this.#time = time;
    this.#ends = new Map(
      customers.flatMap(({ external_customer_id, times }) =>
        times ? [[external_customer_id, Math.max(...times.map(({ end }) => toUs(toInstant(end))))] as const] : [],
      ),
    );
  }

  add(contribution: Contribution): void {
    const { external_customer_id, timestamp_us } = contribution.event;
    const levels = this.#levels.get(external_customer_id) ?? { before: new UsageBucket(), until: new UsageBucket() };
    this.#levels.set(external_customer_id, levels);
    this.#aggregation.add(levels.until, contribution);
    if (timestamp_us < this.#time.start_us) this.#aggregation.add(levels.before, contribution);
  }

  /** Returns the quantity of the line, over all customers. Call it only once, because it removes the levels of customers who have left. */
  finish(): Decimal {
    const { start_us, end_us, whole_us } = this.#time;
    const integrals = [...this.#levels].map(([customer, { before, until }]) => {
      const left_us = this.#ends.get(customer) ?? end_us;
      return this.#integrate(until, left_us, end_us).minus(this.#integrate(before, left_us, start_us));
    });
    return sumDecimals(integrals).dividedBy(new Decimal(whole_us)).toDecimalPlaces(QUANTITY_PLACES);
  }

  #integrate(bucket: UsageBucket, left_us: Microseconds, end_us: Microseconds): Decimal {
    if (bucket.count === 0) return new Decimal(0);
    if (left_us < end_us) bucket.leave(left_us);
    return this.#aggregation.integrate!(bucket, { end_us });
  }
}
