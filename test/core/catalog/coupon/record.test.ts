import { expect } from 'chai';
import {
  type Coupon,
  couponFields,
  couponShape,
  defineCoupon,
  findCouponRefusal,
} from '../../../../core/catalog/coupon/record.ts';
import { FarthingError } from '../../../../core/foundation/error.ts';

const fixed = { name: 'Five', type: 'fixed', amount_off: '5', currency: 'usd', cadence: 'once' };
const share = { name: 'Tenth', type: 'percentage', percentage_off: '10', cadence: 'forever' };
const define = (stated: Record<string, unknown>) => defineCoupon(couponFields.parse(stated));

function faultOf(stated: Record<string, unknown>): unknown {
  try {
    define(stated);
  } catch (error) {
    if (error instanceof FarthingError) return error.details?.field;
    throw error;
  }
  return 'none';
}

describe('a coupon', () => {
  const rows: [string, Record<string, unknown>, string][] = [
    ['an amount of a currency', fixed, 'none'],
    ['a share', share, 'none'],
    ['all of it', { ...share, percentage_off: '100' }, 'none'],
    ['more than all', { ...share, percentage_off: '100.01' }, 'percentage_off'],
    ['a share of nothing', { ...share, percentage_off: '0' }, 'percentage_off'],
    ['a share below nothing', { ...share, percentage_off: '-1' }, 'percentage_off'],
    ['no share', { ...share, percentage_off: null }, 'percentage_off'],
    ['a share and an amount', { ...share, amount_off: '1' }, 'amount_off'],
    ['an amount of 0', { ...fixed, amount_off: '0' }, 'amount_off'],
    ['an amount below 0', { ...fixed, amount_off: '-5' }, 'amount_off'],
    ['half a cent', { ...fixed, amount_off: '10.005' }, 'amount_off'],
    ['half a yen', { ...fixed, amount_off: '100.5', currency: 'jpy' }, 'amount_off'],
    ['no amount', { ...fixed, amount_off: undefined }, 'amount_off'],
    ['an amount and a share', { ...fixed, percentage_off: '1' }, 'percentage_off'],
    ['an amount of no currency', { ...fixed, currency: '' }, 'currency'],
    ['an amount of no such currency', { ...fixed, currency: 'xyz' }, 'currency'],
    ['repeated three times', { ...share, cadence: 'REPEATED', duration_in_periods: 3 }, 'none'],
    ['repeated without saying how often', { ...share, cadence: 'repeated' }, 'duration_in_periods'],
    ['repeated 0 times', { ...share, cadence: 'repeated', duration_in_periods: 0 }, 'duration_in_periods'],
    ['forever, for three periods', { ...share, duration_in_periods: 3 }, 'duration_in_periods'],
    ['once, in one period', { ...fixed, duration_in_periods: 1 }, 'none'],
    ['once, in two periods', { ...fixed, duration_in_periods: 2 }, 'duration_in_periods'],
    ['1 redemption', { ...fixed, max_redemptions: 1 }, 'none'],
    ['a million redemptions', { ...fixed, max_redemptions: 1_000_000 }, 'none'],
    ['0 redemptions', { ...fixed, max_redemptions: 0 }, 'max_redemptions'],
    ['a million and one', { ...fixed, max_redemptions: 1_000_001 }, 'max_redemptions'],
    [
      'from an instant until the same one',
      { ...fixed, redeem_after: '2026-01-01T00:00:00Z', redeem_before: '2026-01-01T00:00:00Z' },
      'none',
    ],
    [
      'until before it begins, told by the instant and not by the text',
      { ...fixed, redeem_after: '2026-01-01T00:00:00Z', redeem_before: '2026-01-01T00:00:00+01:00' },
      'redeem_before',
    ],
  ];
  for (const [what, stated, field] of rows)
    it(`${what}: ${field}`, () => {
      expect(faultOf(stated)).to.equal(field);
    });

  it('has its currency in lower case', () => {
    expect(define({ ...fixed, currency: 'EUR' }).currency).to.equal('eur');
  });

  describe('is redeemed', () => {
    const coupon: Coupon = couponShape.parse({
      ...define({
        ...fixed,
        redeem_after: '2026-01-01T00:00:00Z',
        redeem_before: '2026-02-01T00:00:00Z',
        max_redemptions: 2,
      }),
      id: 'coupon_x',
      total_redemptions: 1,
      tenant_id: 't',
      environment_id: 'e',
      status: 'published',
      created_at: '2026-01-01T00:00:00Z',
      updated_at: '2026-01-01T00:00:00Z',
      created_by: '',
      updated_by: '',
    });
    const at = (now: string, currency?: string) => ({ now: Date.parse(now), ...(currency ? { currency } : {}) });
    const cases: [string, Partial<Coupon>, ReturnType<typeof at>, string | undefined][] = [
      ['at its first instant', {}, at('2026-01-01T00:00:00.000Z'), undefined],
      ['a millisecond before', {}, at('2025-12-31T23:59:59.999Z'), 'COUPON_NOT_ACTIVE'],
      ['at its last instant', {}, at('2026-02-01T00:00:00.000Z'), undefined],
      ['a millisecond after', {}, at('2026-02-01T00:00:00.001Z'), 'COUPON_EXPIRED'],
      [
        'when it was redeemed as often as it may',
        { total_redemptions: 2 },
        at('2026-01-15T00:00:00Z'),
        'REDEMPTION_LIMIT_REACHED',
      ],
      ['when it is archived', { status: 'archived' }, at('2026-01-15T00:00:00Z'), 'COUPON_NOT_PUBLISHED'],
      ['in its currency, in any case', {}, at('2026-01-15T00:00:00Z', 'USD'), undefined],
      ['in another currency', {}, at('2026-01-15T00:00:00Z', 'eur'), 'CURRENCY_MISMATCH'],
      [
        'a share, in any currency',
        { type: 'percentage', currency: 'usd' },
        at('2026-01-15T00:00:00Z', 'eur'),
        undefined,
      ],
    ];
    for (const [when, changes, redemption, reason] of cases)
      it(`${when}: ${reason ?? 'yes'}`, () => {
        expect(findCouponRefusal({ ...coupon, ...changes }, redemption)?.reason).to.equal(reason);
      });
  });
});
