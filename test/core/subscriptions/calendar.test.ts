import { expect } from 'chai';
import { type CalendarTerms, planFirstPeriod } from '../../../core/subscriptions/calendar.ts';

const NOW = Date.parse('2026-01-31T10:00:00.123Z');
const terms = (fields: Partial<CalendarTerms> = {}): CalendarTerms => ({
  billing_cycle: 'anniversary',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
  proration_behavior: 'none',
  ...fields,
});

describe('the first period of a subscription', () => {
  const cases: [string, Partial<CalendarTerms>, string, string][] = [
    ['starts now, anchored there', {}, '2026-01-31T10:00:00.123Z', '2026-02-28T10:00:00.123Z'],
    [
      'an anchor later in the month shortens it',
      { start_date: '2026-01-10T00:00:00Z', billing_anchor: '2025-05-20T00:00:00Z' },
      '2025-05-20T00:00:00.000Z',
      '2026-01-20T00:00:00.000Z',
    ],
    [
      'an anchor earlier in the month is for the next one',
      { start_date: '2026-01-10T00:00:00Z', billing_anchor: '2025-05-05T00:00:00Z' },
      '2025-05-05T00:00:00.000Z',
      '2026-02-05T00:00:00.000Z',
    ],
    [
      'a calendar month ends at local midnight',
      { billing_cycle: 'calendar', timezone: 'Asia/Kolkata' },
      '2026-01-31T18:30:00.000Z',
      '2026-01-31T18:30:00.000Z',
    ],
    [
      'a calendar week ends on Monday',
      { billing_cycle: 'calendar', billing_period: 'WEEKLY' },
      '2026-02-02T00:00:00.000Z',
      '2026-02-02T00:00:00.000Z',
    ],
    [
      'the end of the subscription cuts it',
      { end_date: '2026-02-01T00:00:00Z' },
      '2026-01-31T10:00:00.123Z',
      '2026-02-01T00:00:00.000Z',
    ],
  ];
  for (const [name, fields, anchor, end] of cases) {
    it(name, () => {
      const calendar = planFirstPeriod(terms(fields), NOW);
      expect([calendar.billing_anchor, calendar.current_period_end]).to.deep.equal([anchor, end]);
      expect(calendar.current_period_start).to.equal(calendar.start_date);
    });
  }

  const refused: [string, Partial<CalendarTerms>, RegExp][] = [
    [
      'an anchor with calendar billing',
      { billing_cycle: 'calendar', billing_anchor: '2026-01-01T00:00:00Z' },
      /billing_anchor/,
    ],
    ['an end that is the start', { start_date: '2026-02-01T00:00:00Z', end_date: '2026-02-01T00:00:00Z' }, /end_date/],
    [
      'prorations from yesterday',
      { proration_behavior: 'create_prorations', start_date: '2026-01-30T23:59:59Z' },
      /start_date/,
    ],
  ];
  for (const [name, fields, message] of refused) {
    it(`refuses ${name}`, () => {
      expect(() => planFirstPeriod(terms(fields), NOW)).to.throw(message);
    });
  }

  it('prorations may begin earlier on the same day', () => {
    const today = { proration_behavior: 'create_prorations' as const, start_date: '2026-01-31T00:00:00Z' };
    expect(planFirstPeriod(terms(today), NOW).start_date).to.equal('2026-01-31T00:00:00.000Z');
  });
});
