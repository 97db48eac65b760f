import { expect } from 'chai';
import {
  DEFAULT_INVOICE_NUMBERS,
  formatDocumentNumber,
  type NumberConfig,
  toNumberToken,
} from '../../../../core/invoicing/document/number.ts';
import { dueDate } from '../../../../core/rating/due.ts';

describe('invoice numbers', () => {
  const cases: [Partial<NumberConfig>, bigint, string, string][] = [
    [{}, 1n, '2025-01-10T00:00:00Z', 'INV-202501-00001'],
    [{}, 2n, '2025-01-11T00:00:00Z', 'INV-202501-00002'],
    [{}, 123456n, '2025-01-11T00:00:00Z', 'INV-202501-123456'],
    [
      { prefix: 'ACME', separator: '/', format: 'YYYY', suffix_length: 3 },
      12n,
      '2025-06-01T00:00:00Z',
      'ACME/2025/012',
    ],
    [{ timezone: 'Asia/Kolkata' }, 1n, '2025-01-31T20:00:00Z', 'INV-202502-00001'],
    [{ format: 'YYMMDD', start_sequence: 100 }, 1n, '2025-01-10T00:00:00Z', 'INV-250110-00100'],
    [{ format: 'YYYYMMDD' }, 1n, '2025-01-10T00:00:00Z', 'INV-20250110-00001'],
    [{ format: 'YY' }, 7n, '2025-01-10T00:00:00Z', 'INV-25-00007'],
  ];
  for (const [changes, nth, finalizedAt, expected] of cases) {
    it(expected, () => {
      const config = { ...DEFAULT_INVOICE_NUMBERS, ...changes };
      const token = toNumberToken(config, Date.parse(finalizedAt));
      expect(formatDocumentNumber(config, token, nth)).to.equal(expected);
    });
  }
});

describe('due date', () => {
  const periodEnd = Date.parse('2026-02-01T00:00:00Z');
  const cases: [string | null, string][] = [
    ['30 NET', '2026-03-03T00:00:00.000Z'],
    ['60 NET', '2026-04-02T00:00:00.000Z'],
    [null, '2026-02-02T00:00:00.000Z'],
  ];
  for (const [terms, expected] of cases) {
    it(`${terms ?? 'no terms'}: ${expected}`, () => {
      expect(new Date(dueDate(periodEnd, terms, 1)).toISOString()).to.equal(expected);
    });
  }
  it('refuses terms that it cannot read', () => {
    expect(() => dueDate(periodEnd, 'soon', 1)).to.throw('payment_terms');
  });
});
