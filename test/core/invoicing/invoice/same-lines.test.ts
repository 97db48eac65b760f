/** docs/rules/invoices.md, "From draft to final". */
import { expect } from 'chai';
import type { Invoice, InvoiceLineItem } from '../../../../core/invoicing/invoice/record.ts';
import { isSameInvoice } from '../../../../core/invoicing/invoice/same-lines.ts';

const LINE = {
  id: 'one',
  amount: '10',
  quantity: '1000',
  period_start: '2026-01-01T00:00:00Z',
  metadata: null,
  created_at: '2026-02-01T00:00:00Z',
  computed_from: { event_count: 3, price: { tiers: [{ up_to: '5' }, { up_to: null }] }, as_of: '2026-02-01T00:00:00Z' },
};
const FIELDS = { subtotal: '10', total: '10', last_computed_at: '2026-02-01T00:00:00Z' };

/** A stored invoice against what is computed now. */
const CASES: [what: string, fields: object, lines: object[], isSame: boolean][] = [
  ['all of it', FIELDS, [LINE], true],
  ['computed later', { ...FIELDS, last_computed_at: '2026-02-01T02:00:00Z' }, [{ ...LINE, id: 'other' }], true],
  ['an instant with its fraction', FIELDS, [{ ...LINE, period_start: '2026-01-01T00:00:00.000Z' }], true],
  ['counted later', FIELDS, [{ ...LINE, computed_from: { ...LINE.computed_from, as_of: 'later' } }], true],
  ['another total', { ...FIELDS, total: '11' }, [LINE], false],
  ['another amount', FIELDS, [{ ...LINE, amount: '11' }], false],
  ['another instant', FIELDS, [{ ...LINE, period_start: '2026-01-01T00:00:01Z' }], false],
  ['metadata', FIELDS, [{ ...LINE, metadata: {} }], false],
  ['another count', FIELDS, [{ ...LINE, computed_from: { ...LINE.computed_from, event_count: 4 } }], false],
  ['one tier less', FIELDS, [{ ...LINE, computed_from: { ...LINE.computed_from, price: { tiers: [] } } }], false],
  ['a field that was not there', FIELDS, [{ ...LINE, computed_from: { ...LINE.computed_from, reason: 'x' } }], false],
  ['a field that is gone', FIELDS, [{ ...LINE, computed_from: { price: LINE.computed_from.price } }], false],
  ['a line more', FIELDS, [LINE, LINE], false],
  ['no line', FIELDS, [], false],
];

describe('whether an invoice says what it said', () => {
  for (const [what, fields, lines, isSame] of CASES)
    it(`${what}: ${isSame}`, () => {
      const stored = { invoice: FIELDS as Invoice, line_items: [LINE] as unknown as InvoiceLineItem[] };
      const computed = { fields, lines: lines as InvoiceLineItem[] };
      expect(isSameInvoice(stored, computed)).to.equal(isSame);
    });
});
