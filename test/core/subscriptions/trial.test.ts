/** A trial costs nothing, and the first paid period begins where it ends (docs/rules/subscriptions.md, "Trials"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { nextPeriodEnd, RECURRING_PERIODS } from '../../../core/foundation/time/period.ts';
import { planDueCharges } from '../../../core/rating/charges.ts';
import type { PricedItem } from '../../../core/rating/line-amount.ts';
import { type CalendarTerms, deriveAnchor } from '../../../core/subscriptions/calendar.ts';
import { planTrial } from '../../../core/subscriptions/trial.ts';

const none = { trial_period_days: null, trial_start: null, trial_end: null };
const starts = fc.integer({ min: Date.UTC(2024, 0) / 60_000, max: Date.UTC(2032, 0) / 60_000 }).map((m) => m * 60_000);
const zones = fc.constantFrom('UTC', 'America/New_York', 'Europe/Berlin', 'Pacific/Apia', 'Pacific/Pago_Pago');
const days = fc.integer({ min: 1, max: 400 });

describe('laws of trials', () => {
  it('N days end at the clock time at which they began, N days of the calendar later', () =>
    fc.assert(
      fc.property(starts, zones, days, (start, timezone, count) => {
        const trial = planTrial({ ...none, trial_period_days: count }, { start, timezone, prices: [] })!;
        const expected = Temporal.Instant.fromEpochMilliseconds(start)
          .toZonedDateTimeISO(timezone)
          .add({ days: count });
        expect(trial).to.deep.equal({ start, end: expected.epochMilliseconds });
      }),
    ));

  it('the first paid period begins where the trial ends, and is whole where nothing else was stated', () =>
    fc.assert(
      fc.property(
        starts,
        zones,
        days,
        fc.constantFrom(...RECURRING_PERIODS),
        (start, timezone, count, billing_period) => {
          const trial = planTrial({ ...none, trial_period_days: count }, { start, timezone, prices: [] })!;
          const cycle = { billing_period, billing_period_count: 1, timezone };
          const terms = { ...cycle, billing_cycle: 'anniversary', billing_anchor: null } as CalendarTerms;
          const anchor = deriveAnchor(trial.end, terms);
          expect(anchor).to.equal(trial.end);
          const paid = {
            start: trial.end,
            end: nextPeriodEnd({ ...cycle, billing_anchor: anchor, period_start: trial.end }),
          };
          const subscription = { ...cycle, start_ms: start, end_ms: null, billing_anchor_ms: anchor };
          const due = planDueCharges({
            subscription,
            items: [seat(start, billing_period)],
            period: paid,
            reference: 'period_start',
          });
          expect(due.map(({ service, share }) => [service, share.part_ms === share.whole_ms])).to.deep.equal([
            [paid, true],
          ]);
        },
      ),
    ));
});

function seat(start_ms: number, billing_period: PricedItem['billing_period']): PricedItem {
  return {
    id: 'seat',
    price: { billing_model: 'FLAT_FEE', currency: 'usd', amount: '1' },
    quantity: new Decimal(1),
    price_type: 'FIXED',
    invoice_cadence: 'ADVANCE',
    billing_period,
    billing_period_count: 1,
    start_ms,
    end_ms: null,
    reset_usage: null,
    display_name: 'seat',
    meter_id: null,
  };
}
