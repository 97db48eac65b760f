/** Until when usage should stand on invoices, and what of it stands on none. */
import { expect } from 'chai';
import { formatMs, toInstant } from '../../../../core/foundation/time/instant.ts';
import {
  canBeUnpaid,
  deriveInvoicedReach,
  type InvoicedReach,
  uninvoicedTimes,
} from '../../../../core/invoicing/invoice/uninvoiced.ts';
import type { Subscription } from '../../../../core/subscriptions/record.ts';

const day = (text: string) => toInstant(`2026-${text}T00:00:00Z`);
const date = (text: string) => formatMs(day(text));
const days = (start: string, end: string) => ({ start: day(start), end: day(end) });

/** In its period of March. */
function subscription(fields: Partial<Subscription> = {}): Subscription {
  return {
    subscription_status: 'active',
    subscription_type: 'STANDALONE',
    payment_behavior: 'default_active',
    current_period_start: date('03-01'),
    current_period_end: date('04-01'),
    ...fields,
  } as Subscription;
}
const group = { subscription_type: 'grouped_invoicing' } as const;
const cancelled = (at: string) =>
  ({ subscription_status: 'cancelled', end_date: date(at), cancelled_at: date(at) }) as const;
const byItself = (at: string) => ({ ...cancelled(at), current_period_end: date(at) });

describe('until when usage is invoiced', () => {
  const alone = { parent: undefined, has_last: false };
  const CASES: readonly [what: string, Subscription, Parameters<typeof deriveInvoicedReach>[1], string | null][] = [
    ['one that goes on: to its period', subscription(), alone, '03-01, goes on'],
    ['a draft: nothing', subscription({ subscription_status: 'draft' }), alone, null],
    ['a trial: nothing', subscription({ subscription_status: 'trialing' }), alone, null],
    ['one that is incomplete: nothing', subscription({ subscription_status: 'incomplete' }), alone, null],
    ['one who takes part in another: nothing', subscription({ subscription_type: 'INHERITED' }), alone, null],
    ['one whose end came: to its end', subscription(byItself('03-10')), alone, '03-10'],
    ['one cancelled at once: to its end', subscription(cancelled('03-10')), { ...alone, has_last: true }, '03-10'],
    ['the same without a last invoice: it may be forgiven', subscription(cancelled('03-10')), alone, '03-01, goes on'],
    [
      'one of a group whose parent is in the same period',
      subscription({ ...group, ...byItself('03-10') }),
      { ...alone, parent: subscription() },
      '03-01, goes on',
    ],
    [
      'one of a group whose parent has moved on',
      subscription({ ...group, ...cancelled('03-10') }),
      { ...alone, parent: subscription({ current_period_start: date('04-01') }) },
      '03-10',
    ],
    [
      'one of a group whose parent is behind',
      subscription({ ...group, ...byItself('03-10') }),
      { ...alone, parent: subscription({ current_period_start: date('02-01') }) },
      '02-01, goes on',
    ],
    [
      'one of a group whose parent has ended',
      subscription({ ...group, ...byItself('03-10') }),
      { ...alone, parent: subscription(cancelled('03-05')) },
      '03-10',
    ],
    ['one of a group whose parent is gone: nothing', subscription({ ...group, ...byItself('03-10') }), alone, null],
  ];
  const told = (reach: InvoicedReach | null) =>
    reach && `${formatMs(reach.until_ms).slice(5, 10)}${reach.is_over ? '' : ', goes on'}`;
  for (const [what, one, family, expected] of CASES)
    it(`of ${what}`, () => {
      expect(told(deriveInvoicedReach(one, family))).to.equal(expected);
    });

  it('who has to pay first, or was in a trial, may have ended without it', () => {
    const waits = { payment_behavior: 'allow_incomplete' } as const;
    const ended = byItself('03-10');
    expect(canBeUnpaid(subscription(ended), undefined)).to.equal(false);
    expect(canBeUnpaid(subscription(waits), undefined)).to.equal(false);
    expect(canBeUnpaid(subscription({ ...ended, ...waits }), undefined)).to.equal(true);
    expect(canBeUnpaid(subscription({ ...ended, trial_end: date('02-01') }), undefined)).to.equal(true);
    expect(canBeUnpaid(subscription(ended), subscription(waits))).to.equal(true);
  });
});

describe('the time of a line that is on no invoice', () => {
  const item = {
    id: 'line',
    price_type: 'USAGE',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: day('01-01'),
    end_ms: null,
    reset_usage: null,
  } as const;
  const billed = {
    start_ms: day('01-01'),
    end_ms: null,
    billing_anchor_ms: day('01-01'),
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    timezone: 'UTC',
  } as const;
  const quarter = { ...item, billing_period: 'QUARTERLY' } as const;
  const goesOn = (until: string) => ({ until_ms: day(until), is_over: false });
  const over = (until: string) => ({ until_ms: day(until), is_over: true });
  const january = days('01-01', '02-01');
  const CASES: readonly [string, Omit<Parameters<typeof uninvoicedTimes>[0], 'subscription'>, string[]][] = [
    ['none', { item, reach: goesOn('02-01'), invoiced: [january] }, []],
    ['a period', { item, reach: goesOn('03-01'), invoiced: [january] }, ['02-01 03-01']],
    ['between others', { item, reach: goesOn('04-01'), invoiced: [january, days('03-01', '04-01')] }, ['02-01 03-01']],
    ['all of it', { item, reach: over('01-20'), invoiced: [] }, ['01-01 01-20']],
    [
      'none behind its end',
      { item: { ...item, end_ms: day('01-10') }, reach: goesOn('02-01'), invoiced: [days('01-01', '01-10')] },
      [],
    ],
    [
      'none where it begins later',
      { item: { ...item, start_ms: day('02-10') }, reach: goesOn('02-01'), invoiced: [] },
      [],
    ],
    ['none of what goes on by periods of its own', { item: quarter, reach: goesOn('03-01'), invoiced: [] }, []],
    ['a period of its own', { item: quarter, reach: goesOn('05-01'), invoiced: [] }, ['01-01 04-01']],
    [
      'what a change has cut of it',
      { item: { ...quarter, end_ms: day('02-10') }, reach: goesOn('05-01'), invoiced: [] },
      ['01-01 02-10'],
    ],
    [
      'not what a change has cut where the running period begins',
      { item: { ...quarter, end_ms: day('03-01') }, reach: goesOn('03-01'), invoiced: [] },
      [],
    ],
    ['what was begun of it at the end', { item: quarter, reach: over('03-01'), invoiced: [] }, ['01-01 03-01']],
  ];
  for (const [what, question, expected] of CASES)
    it(`is ${what}`, () => {
      const times = uninvoicedTimes({ ...question, subscription: billed });
      expect(
        times.map(({ start, end }) => `${formatMs(start).slice(5, 10)} ${formatMs(end).slice(5, 10)}`),
      ).to.deep.equal(expected);
    });
});
