import { expect } from 'chai';
import { nextPeriodEnd, type Period } from '../../../core/foundation/time/period.ts';
import {
  type BilledItem,
  type BilledSubscription,
  planDueCharges,
  type ReferencePoint,
} from '../../../core/rating/charges.ts';
import { isWhole } from '../../../core/rating/proration.ts';

const at = (text: string) => Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text);
const period = (start: string, end: string): Period => ({ start: at(start), end: at(end) });
const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);

const monthly: BilledSubscription = {
  start_ms: at('2026-01-01'),
  end_ms: null,
  billing_anchor_ms: at('2026-01-01'),
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

function item(id: string, changes: Partial<BilledItem> = {}): BilledItem {
  return {
    id,
    price_type: 'FIXED',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: at('2026-01-01'),
    end_ms: null,
    reset_usage: null,
    ...changes,
  };
}

const advance = item('advance', { invoice_cadence: 'ADVANCE' });
const arrear = item('arrear');
const usage = item('usage', { price_type: 'USAGE', reset_usage: 'BILLING_PERIOD' });

/** `id start..end` of every charge due. */
function due(
  reference: ReferencePoint,
  items: readonly BilledItem[],
  given: Partial<Parameters<typeof planDueCharges>[0]> = {},
) {
  const charges = planDueCharges({
    subscription: monthly,
    items,
    period: period('2026-01-01', '2026-02-01'),
    reference,
    ...given,
  });
  return charges.map(({ item: { id }, service }) => `${id} ${day(service.start)}..${day(service.end)}`);
}

describe('charges due', () => {
  describe('reference points', () => {
    const cases: [ReferencePoint, string[]][] = [
      ['period_start', ['advance 2026-01-01..2026-02-01']],
      [
        'period_end',
        ['advance 2026-02-01..2026-03-01', 'arrear 2026-01-01..2026-02-01', 'usage 2026-01-01..2026-02-01'],
      ],
      ['preview', ['advance 2026-02-01..2026-03-01', 'arrear 2026-01-01..2026-02-01', 'usage 2026-01-01..2026-02-01']],
    ];
    for (const [reference, expected] of cases) {
      it(reference, () => expect(due(reference, [advance, arrear, usage])).to.deep.equal(expected));
    }

    it('cancel: arrears up to the date, nothing in advance', () => {
      const charges = due('cancel', [advance, arrear, usage], { period: period('2026-01-01', '2026-01-16') });
      expect(charges).to.deep.equal(['arrear 2026-01-01..2026-01-16', 'usage 2026-01-01..2026-01-16']);
    });

    it('the last period of a subscription has no next advance', () => {
      const subscription = { ...monthly, end_ms: at('2026-02-01') };
      expect(due('period_end', [advance, arrear], { subscription })).to.deep.equal(['arrear 2026-01-01..2026-02-01']);
    });
  });

  describe('where an item lives', () => {
    it('usage is counted where the item and the period meet', () => {
      const late = { ...usage, start_ms: at('2026-01-10'), end_ms: at('2026-01-20') };
      const [charge] = planDueCharges({
        subscription: monthly,
        items: [late],
        period: period('2026-01-01', '2026-02-01'),
        reference: 'period_end',
      });
      expect(charge?.usage_window).to.deep.equal(period('2026-01-10', '2026-01-20'));
    });

    it('an item that ended before the period, or begins after it, is not charged', () => {
      const gone = { ...arrear, end_ms: at('2026-01-01') };
      const future = { ...arrear, start_ms: at('2026-02-01') };
      expect(due('period_end', [gone, future])).to.deep.equal([]);
    });

    it('an advance item that was added inside the period is charged for the rest of it and for the next', () => {
      const added = { ...advance, start_ms: at('2026-01-16') };
      expect(due('period_end', [added])).to.deep.equal([
        'advance 2026-01-16..2026-02-01',
        'advance 2026-02-01..2026-03-01',
      ]);
    });

    for (const [name, start] of [
      ['the subscription', '2026-01-01'],
      ['an earlier period', '2026-02-01'],
      ['the middle of the period', '2026-03-10'],
    ] as const)
      it(`of a line that began with ${name} a meter that never resets counts from the start of the subscription`, () => {
        const [charge] = planDueCharges({
          subscription: monthly,
          items: [{ ...usage, reset_usage: 'NEVER' as const, start_ms: at(start) }],
          period: period('2026-03-01', '2026-04-01'),
          reference: 'period_end',
        });
        expect(charge?.usage_window).to.deep.equal(period('2026-01-01', '2026-04-01'));
        expect(charge?.service).to.deep.equal(period(start < '2026-03-01' ? '2026-03-01' : start, '2026-04-01'));
      });
  });

  describe('ONETIME', () => {
    const cases: ['ADVANCE' | 'ARREAR', string, ReferencePoint, boolean][] = [
      ['ADVANCE', '2026-01-01', 'period_start', true],
      ['ADVANCE', '2026-01-15', 'period_start', true],
      ['ADVANCE', '2026-02-01', 'period_start', false],
      ['ADVANCE', '2025-12-15', 'period_start', false],
      ['ADVANCE', '2026-02-01', 'period_end', true],
      ['ADVANCE', '2026-02-15', 'period_end', true],
      ['ADVANCE', '2026-03-01', 'period_end', false],
      ['ARREAR', '2026-01-15', 'period_end', true],
      ['ARREAR', '2026-02-01', 'period_end', true],
      ['ARREAR', '2026-01-01', 'period_end', false],
      ['ARREAR', '2026-02-02', 'period_end', false],
    ];
    for (const [invoice_cadence, date, reference, charged] of cases) {
      it(`${invoice_cadence} on ${date} is ${charged ? 'charged' : 'left out'} at ${reference}`, () => {
        const once = item('once', { billing_period: 'ONETIME', invoice_cadence, start_ms: at(date) });
        expect(due(reference, [once])).to.deep.equal(charged ? [`once ${date}..${date}`] : []);
      });
    }
  });

  describe('multi-cadence', () => {
    type Cadence = [BilledItem['billing_period'], 'ARREAR' | 'ADVANCE', number];
    const cases: [string, BilledSubscription['billing_period'], Cadence[], number[]][] = [
      [
        'longer arrears',
        'MONTHLY',
        [
          ['MONTHLY', 'ARREAR', 50],
          ['QUARTERLY', 'ARREAR', 300],
          ['ANNUAL', 'ARREAR', 1200],
        ],
        [0, 50, 50, 350, 50, 50, 350, 50, 50, 350, 50, 50, 1550],
      ],
      [
        'longer advances',
        'MONTHLY',
        [
          ['MONTHLY', 'ADVANCE', 300],
          ['QUARTERLY', 'ADVANCE', 400],
          ['ANNUAL', 'ADVANCE', 500],
        ],
        [1200, 300, 300, 700, 300, 300, 700, 300, 300, 700, 300, 300],
      ],
      [
        'quarters and a year in arrears',
        'QUARTERLY',
        [
          ['QUARTERLY', 'ARREAR', 500],
          ['ANNUAL', 'ARREAR', 5000],
        ],
        [0, 500, 500, 500, 5500],
      ],
      ['shorter periods: several lines on one invoice', 'QUARTERLY', [['MONTHLY', 'ARREAR', 10]], [0, 30, 30]],
    ];
    for (const [name, billing_period, cadences, subtotals] of cases) {
      it(name, () => {
        const subscription = { ...monthly, billing_period };
        const amounts = new Map(cadences.map(([p, c, amount]) => [`${p}/${c}`, amount]));
        const items = cadences.map(([p, c]) => item(`${p}/${c}`, { billing_period: p, invoice_cadence: c }));
        const first = {
          start: monthly.start_ms,
          end: nextPeriodEnd({ ...rule(subscription), period_start: monthly.start_ms }),
        };
        const sums = [
          charged(planDueCharges({ subscription, items, period: first, reference: 'period_start' }), amounts),
        ];
        for (let current = first; sums.length < subtotals.length; ) {
          sums.push(
            charged(planDueCharges({ subscription, items, period: current, reference: 'period_end' }), amounts),
          );
          current = { start: current.end, end: nextPeriodEnd({ ...rule(subscription), period_start: current.end }) };
        }
        expect(sums).to.deep.equal(subtotals);
      });
    }

    it('what still runs when the subscription ends is charged for its share', () => {
      const subscription = { ...monthly, end_ms: at('2026-02-01') };
      const items = [item('year', { billing_period: 'ANNUAL' })];
      const [charge] = planDueCharges({
        subscription,
        items,
        period: period('2026-01-01', '2026-02-01'),
        reference: 'period_end',
      });
      expect(charge?.share).to.deep.equal({ part_ms: 31 * 86_400_000, whole_ms: 365 * 86_400_000 });
    });
  });

  describe('shares of a period', () => {
    const calendarShort = { ...monthly, start_ms: at('2026-01-15'), billing_anchor_ms: at('2026-02-01') };
    const cases: [string, BilledSubscription, Period, string][] = [
      ['calendar billing shortens the first month', calendarShort, period('2026-01-15', '2026-02-01'), '17/31'],
      ['later months are whole', calendarShort, period('2026-02-01', '2026-03-01'), 'whole'],
      [
        'an anniversary with a later anchor',
        { ...monthly, billing_anchor_ms: at('2026-01-20') },
        period('2026-01-01', '2026-01-20'),
        '19/31',
      ],
      [
        'a month that ends on a clamped day',
        { ...monthly, start_ms: at('2026-01-31'), billing_anchor_ms: at('2026-01-31') },
        period('2026-01-31', '2026-02-28'),
        'whole',
      ],
      [
        'a month that begins on a clamped day',
        { ...monthly, start_ms: at('2026-01-31'), billing_anchor_ms: at('2026-01-31') },
        period('2026-02-28', '2026-03-31'),
        'whole',
      ],
      [
        'a year that a later anchor shortens',
        { ...monthly, billing_period: 'ANNUAL', billing_anchor_ms: at('2026-06-15') },
        period('2026-01-01', '2026-06-15'),
        '165/365',
      ],
      [
        'a week',
        { ...monthly, billing_period: 'WEEKLY', billing_anchor_ms: at('2026-01-05') },
        period('2026-01-01', '2026-01-05'),
        '4/7',
      ],
      [
        'two weeks, from a day that is not the anchor’s: a share of both',
        { ...monthly, billing_period: 'WEEKLY', billing_period_count: 2, billing_anchor_ms: at('2025-01-06') },
        period('2026-01-01', '2026-01-05'),
        '4/14',
      ],
      [
        'a quarter whose anchor lies 17 months ahead',
        { ...monthly, billing_period: 'QUARTERLY', billing_anchor_ms: at('2027-06-01') },
        period('2026-01-01', '2026-03-01'),
        '59/90',
      ],
      [
        'half a year on the grid of an anchor of years ago',
        { ...monthly, billing_period: 'HALF_YEARLY', billing_anchor_ms: at('2019-05-01') },
        period('2026-01-01', '2026-05-01'),
        '120/181',
      ],
      [
        'a day that began at the anchor’s clock',
        { ...monthly, billing_period: 'DAILY', billing_anchor_ms: at('2026-01-09T12:00:00Z') },
        period('2026-01-01', '2026-01-01T12:00:00Z'),
        '0.5/1',
      ],
      [
        'a month that begins hours after the anchor’s clock',
        { ...monthly, start_ms: at('2026-01-01T18:00:00Z') },
        period('2026-01-01T18:00:00Z', '2026-02-01'),
        '30.25/31',
      ],
      [
        'what the end of the subscription cuts as well: from the 15th to the 25th of January',
        { ...calendarShort, end_ms: at('2026-01-25') },
        period('2026-01-15', '2026-01-25'),
        '10/31',
      ],
    ];
    for (const [name, subscription, first, expected] of cases) {
      it(name, () => {
        const { billing_period, billing_period_count, start_ms } = subscription;
        const line = { ...advance, billing_period, billing_period_count, start_ms };
        const [charge] = planDueCharges({ subscription, items: [line], period: first, reference: 'period_start' });
        const share = charge!.share;
        const text = isWhole(share) ? 'whole' : `${share.part_ms / 86_400_000}/${share.whole_ms / 86_400_000}`;
        expect(text).to.equal(expected);
      });
    }
  });
});

function rule(subscription: BilledSubscription) {
  return { ...subscription, billing_anchor: subscription.billing_anchor_ms };
}

function charged(charges: { item: BilledItem }[], amounts: Map<string, number>): number {
  return charges.reduce((sum, { item: { id } }) => sum + amounts.get(id)!, 0);
}
