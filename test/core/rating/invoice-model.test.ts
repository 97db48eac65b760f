/** The reference model of invoices against the examples of the rules. */
import { expect } from 'chai';
import { invoicesByModel } from '../../support/invoice-model.ts';

describe('the reference model of invoices', () => {
  it('divides a level by the whole period, also in the last one, which is cut (docs/rules/metering.md)', () => {
    const subscription = {
      customer: 'acme',
      start: '2026-01-01T00:00:00Z',
      end: '2026-01-16T00:00:00Z',
      timezone: 'UTC',
      period: { months: 1 },
      prices: [
        {
          name: 'storage',
          terms: { model: 'FLAT_FEE', amount: '31' } as const,
          meter: { event_name: 'stored', aggregation: { type: 'WEIGHTED_SUM', field: 'gb' } as const },
        },
      ],
    };
    const stored = {
      event_id: 'e1',
      event_name: 'stored',
      external_customer_id: 'acme',
      timestamp: '2026-01-01T00:00:00Z',
      properties: { gb: 10 },
    };
    const [invoice] = invoicesByModel(subscription, [stored]);
    expect(invoice).to.deep.equal({
      start: '2026-01-01T00:00:00Z',
      end: '2026-01-16T00:00:00Z',
      lines: [{ name: 'storage', quantity: '4.838709677419354839', amount: '150' }],
      total: '150',
    });
  });
});
