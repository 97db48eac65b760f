import { expect } from 'chai';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import { duePeriods } from '../../../core/rating/due.ts';

const at = (text: string) => Date.parse(`${text}T00:00:00Z`);
const on31st: BilledSubscription = {
  start_ms: at('2026-01-31'),
  end_ms: null,
  billing_anchor_ms: at('2026-01-31'),
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};
const first = { start: at('2026-01-31'), end: at('2026-02-28') };
const day = (instant: number) => new Date(instant).toISOString().slice(5, 10);

describe('due periods', () => {
  const cases: [string, Partial<BilledSubscription>, string, string[]][] = [
    ['nothing before the end', {}, '2026-02-27', []],
    ['due at the very end', {}, '2026-02-28', ['01-31..02-28']],
    ['several after a pause of the service', {}, '2026-05-01', ['01-31..02-28', '02-28..03-31', '03-31..04-30']],
    [
      'the end of the subscription is the last',
      { end_ms: at('2026-03-15') },
      '2026-06-01',
      ['01-31..02-28', '02-28..03-15'],
    ],
    [
      'a cancellation inside the current period closes it early',
      { end_ms: at('2026-02-10') },
      '2026-02-10',
      ['01-31..02-10'],
    ],
    ['and not before its date', { end_ms: at('2026-02-10') }, '2026-02-09', []],
  ];
  for (const [name, changes, now, expected] of cases) {
    it(name, () => {
      const due = duePeriods({ ...on31st, ...changes }, first, at(now));
      expect(due.map(({ closed }) => `${day(closed.start)}..${day(closed.end)}`)).to.deep.equal(expected);
    });
  }

  it('says which one is the last', () => {
    const due = duePeriods({ ...on31st, end_ms: at('2026-03-31') }, first, at('2026-06-01'));
    expect(due.map(({ next }) => next === null)).to.deep.equal([false, true]);
  });
});
