/** What holds for every grant: its periods meet, nothing is given twice or for nothing, and what is put off comes back. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { CreditGrant } from '../../../../core/catalog/credit-grant/record.ts';
import {
  type AppliedGrant,
  computeDeferMinutes,
  deriveApplicationAction,
  deriveApplicationOutcome,
  findGrantEndReason,
  planFirstApplication,
  planNextApplication,
} from '../../../../core/credits/grants/application.ts';
import { computeCreditExpiry, computeCreditShare, toGrantPeriod } from '../../../../core/credits/grants/periods.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { formatMs, toInstant } from '../../../../core/foundation/time/instant.ts';
import { RECURRING_PERIODS } from '../../../../core/foundation/time/period.ts';
import { SUBSCRIPTION_STATUSES } from '../../../../core/subscriptions/record.ts';

const HOUR = 3_600_000;
const instant = fc.integer({ min: Date.UTC(2024, 0, 1) / HOUR, max: Date.UTC(2031, 0, 1) / HOUR }).map((n) => n * HOUR);
const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata');

const GRANT: CreditGrant = {
  id: 'cg_1',
  name: 'Credits',
  scope: 'SUBSCRIPTION',
  plan_id: null,
  subscription_id: 'subs_1',
  addon_id: null,
  credits: '100',
  cadence: 'RECURRING',
  period: 'MONTHLY',
  period_count: 1,
  expiration_type: 'NEVER',
  expiration_duration: null,
  expiration_duration_unit: null,
  priority: null,
  conversion_rate: null,
  topup_conversion_rate: null,
  start_date: null,
  end_date: null,
  credit_grant_anchor: null,
  metadata: null,
  tenant_id: 't',
  environment_id: 'e',
  status: 'published',
  created_at: '',
  updated_at: '',
  created_by: '',
  updated_by: '',
};

const JANUARY = Date.UTC(2026, 0, 1);
/** Its periods are months from the first of January on. */
const SUBSCRIPTION: AppliedGrant['subscription'] = {
  id: 'subs_1',
  plan_id: 'plan_1',
  start_date: formatMs(JANUARY),
  end_date: null,
  trial_start: null,
  trial_end: null,
  current_period_start: formatMs(JANUARY),
  current_period_end: '2026-02-01T00:00:00Z',
  billing_anchor: formatMs(JANUARY),
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

const given: fc.Arbitrary<{ given: AppliedGrant; from: number }> = fc
  .record({
    start: instant,
    anchor: instant,
    period: fc.constantFrom(...RECURRING_PERIODS),
    period_count: fc.integer({ min: 1, max: 5 }),
    timezone: zone,
    days: fc.option(fc.integer({ min: 1, max: 900 })),
    quantity: fc.option(fc.integer({ min: 1, max: 4 })),
    expiration_type: fc.constantFrom('NEVER' as const, 'DURATION' as const, 'BILLING_CYCLE' as const),
    expiration_duration: fc.integer({ min: 1, max: 40 }),
    expiration_duration_unit: fc.constantFrom('DAY' as const, 'WEEK' as const, 'MONTH' as const, 'YEAR' as const),
  })
  .map(({ start, anchor, timezone, days, quantity, ...terms }) => {
    const start_date = formatMs(start);
    const end_date = days === null ? null : formatMs(start + days * 24 * HOUR);
    const grant = { ...GRANT, ...terms, start_date, end_date, credit_grant_anchor: formatMs(anchor) };
    const subscription = {
      ...SUBSCRIPTION,
      start_date,
      current_period_start: start_date,
      current_period_end: formatMs(start + 20 * 24 * HOUR),
      billing_anchor: formatMs(start + 20 * 24 * HOUR),
      timezone,
    };
    const association = quantity === null ? null : { id: 'addon_assoc_1', quantity, start_date };
    return { given: { grant, subscription, association }, from: start };
  });

/** The applications of a grant, the first twenty. */
function chainOf({ given: one, from }: { given: AppliedGrant; from: number }) {
  const chain = [planFirstApplication(one, from)];
  while (chain.length < 20) {
    const next = planNextApplication(one, chain.at(-1)!);
    if (next === null) break;
    chain.push(next);
  }
  return chain;
}

describe('core/credits/grants: applications', () => {
  it('of a grant meet each other, and have keys of their own', () => {
    fc.assert(
      fc.property(given, (one) => {
        const chain = chainOf(one);
        for (const [index, { period_start, period_end }] of chain.entries()) {
          expect(toInstant(period_end!)).to.be.above(toInstant(period_start));
          if (index > 0) expect(period_start).to.equal(chain[index - 1]!.period_end);
        }
        expect(new Set(chain.map(({ idempotency_key }) => idempotency_key)).size).to.equal(chain.length);
        expect(toInstant(chain[0]!.scheduled_for)).to.equal(one.from);
      }),
    );
  });

  it('but for the first none ends behind the end of the grant, and each gives all of it', () => {
    fc.assert(
      fc.property(given, (one) => {
        const { grant, association } = one.given;
        const whole = new Decimal(grant.credits).times(association?.quantity ?? 1);
        const [first, ...others] = chainOf(one);
        expect(new Decimal(first!.credits).lte(whole) && new Decimal(first!.credits).gt(0)).to.equal(true);
        for (const { period_end, credits } of others) {
          expect(new Decimal(credits).eq(whole)).to.equal(true);
          if (grant.end_date) expect(toInstant(period_end!)).to.be.at.most(toInstant(grant.end_date));
        }
      }),
    );
  });

  /** Monthly from the first of January on, to a subscription whose periods are months, too. */
  const monthly = (
    grant: Partial<CreditGrant>,
    subscription: Partial<AppliedGrant['subscription']> = {},
  ): AppliedGrant => {
    return { grant: { ...GRANT, ...grant }, subscription: { ...SUBSCRIPTION, ...subscription }, association: null };
  };

  for (const [end_date, months] of [
    ['2026-03-31T23:59:59.999Z', 2],
    ['2026-04-01T00:00:00Z', 3],
    ['2026-04-01T00:00:00.001Z', 3],
  ] as const)
    it(`one that ends at ${end_date} gives for ${months} months: a period that ends with it is one of it`, () => {
      const chain = chainOf({ given: monthly({ end_date }), from: JANUARY });
      expect(chain.map(({ period_start }) => period_start.slice(0, 10))).to.deep.equal(
        ['2026-01-01', '2026-02-01', '2026-03-01'].slice(0, months),
      );
    });

  it('what has expired when it is looked at is skipped, at the instant of its expiry, too', () => {
    const given = monthly({ expiration_type: 'DURATION', expiration_duration: 10, expiration_duration_unit: 'DAY' });
    const expiry = Date.UTC(2026, 0, 11);
    const at = (now: number) =>
      deriveApplicationOutcome(given, planFirstApplication(given, JANUARY), { status: 'active', now });
    expect(at(expiry - 1)).to.deep.equal({ action: 'apply', expires_at: expiry });
    expect([at(expiry).action, at(expiry + 1).action]).to.deep.equal(['skip', 'skip']);
  });

  it('what is due of one that is paused, a draft or not paid yet is put off; of one that runs it is given', () => {
    const given = monthly({});
    const actions = SUBSCRIPTION_STATUSES.map((status) => {
      const { action } = deriveApplicationOutcome(given, planFirstApplication(given, JANUARY), {
        status,
        now: JANUARY,
      });
      return [status, action];
    });
    expect(Object.fromEntries(actions)).to.deep.equal({
      active: 'apply',
      trialing: 'apply',
      incomplete: 'defer',
      draft: 'defer',
      paused: 'defer',
      cancelled: 'cancel',
    });
  });

  it('what expires with the billing cycle is good until the running period ends, where that does not lie on the grid, too', () => {
    const grant = { ...GRANT, expiration_type: 'BILLING_CYCLE' as const };
    const { subscription } = monthly({}, { current_period_end: '2026-02-11T00:00:00Z' });
    const expiry = (at: string) => formatMs(computeCreditExpiry(grant, toInstant(at), subscription)!).slice(0, 10);
    expect(['2026-01-01T00:00:00Z', '2026-02-10T23:59:59.999Z'].map(expiry)).to.deep.equal([
      '2026-02-11',
      '2026-02-11',
    ]);
    expect(expiry('2026-02-11T00:00:00Z')).to.equal('2026-03-01');
  });

  it('what is given once is given whole, whenever it begins, and nothing follows', () => {
    fc.assert(
      fc.property(given, ({ given: one, from }) => {
        const once: AppliedGrant = {
          ...one,
          grant: { ...one.grant, cadence: 'ONETIME', period: null, period_count: null },
        };
        const first = planFirstApplication(once, from);
        expect(new Decimal(first.credits).eq(new Decimal(100).times(one.association?.quantity ?? 1))).to.equal(true);
        expect(planNextApplication(once, first)).to.equal(null);
      }),
    );
  });

  it('the parts of a period add up to the whole', () => {
    fc.assert(
      fc.property(instant, instant, zone, fc.constantFrom(...RECURRING_PERIODS), (anchor, from, timezone, period) => {
        const { whole } = toGrantPeriod({ period, period_count: 1, anchor, timezone }, from);
        const rest = computeCreditShare('100', whole, from);
        const before = new Decimal(100).times(from - whole.start).dividedBy(whole.end - whole.start);
        expect(rest.plus(before).minus(100).abs().lte('0.000000000001')).to.equal(true);
      }),
    );
  });

  it('expire behind the begin of their period, if at all', () => {
    fc.assert(
      fc.property(given, (one) => {
        for (const { period_start } of chainOf(one)) {
          const expires = computeCreditExpiry(one.given.grant, toInstant(period_start), one.given.subscription);
          expect(expires === null).to.equal(one.given.grant.expiration_type === 'NEVER');
          if (expires !== null) expect(expires).to.be.above(toInstant(period_start));
        }
      }),
    );
  });

  it('what is due is applied, put off, skipped or cancelled, by the state of its subscription and its ends', () => {
    fc.assert(
      fc.property(given, fc.constantFrom(...SUBSCRIPTION_STATUSES), instant, (one, status, later) => {
        const [first] = chainOf(one);
        const now = Math.max(later, one.from);
        const outcome = deriveApplicationOutcome(one.given, first!, { status, now });
        if (status === 'cancelled' || findGrantEndReason(one.given, one.from))
          expect(outcome.action).to.equal('cancel');
        else if (deriveApplicationAction(status) === 'defer') expect(outcome.action).to.equal('defer');
        else {
          const expires = computeCreditExpiry(one.given.grant, one.from, one.given.subscription);
          expect(outcome.action).to.equal(expires !== null && expires <= now ? 'skip' : 'apply');
        }
      }),
    );
  });

  it('a template that is archived, a plan that was left and an add-on that is gone give nothing', () => {
    const base = { ...GRANT, scope: 'PLAN' as const, plan_id: 'plan_1', subscription_id: null };
    const sample = fc.sample(given, 1)[0]!;
    const { subscription } = sample.given;
    const { from } = sample;
    const over = (changes: Partial<AppliedGrant>) =>
      findGrantEndReason({ grant: base, subscription, association: null, ...changes }, from);
    expect(over({})).to.equal(null);
    expect(over({ grant: { ...base, status: 'archived' } })).to.equal('the grant is archived');
    expect(over({ subscription: { ...subscription, plan_id: 'plan_2' } })).to.contain('another plan');
    const association = { id: 'a', quantity: 1, start_date: formatMs(from), end_date: formatMs(from) };
    expect(over({ association })).to.contain('the add-on');
    expect(over({ subscription: { ...subscription, end_date: formatMs(from) } })).to.contain('ended');
  });

  it('waits twice as long each time, up to eight hours', () => {
    expect([0, 1, 2, 3, 4, 5, 100].map(computeDeferMinutes)).to.deep.equal([30, 60, 120, 240, 480, 480, 480]);
  });
});
