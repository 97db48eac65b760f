import { expect } from 'chai';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { computeIncludedTax } from '../../../../core/invoicing/credit-note/included-tax.ts';
import { buildCreditNoteDocument } from '../../../../core/invoicing/document/credit-note.ts';
import { LANGUAGES } from '../../../../core/invoicing/document/language.ts';
import { expectGolden } from '../../../support/golden.ts';
import { printedCreditNote } from '../../../support/printed-invoice.ts';

describe('the document of a credit note', () => {
  for (const language of LANGUAGES)
    it(`in ${language}`, () => {
      expectGolden(`credit-note-document/${language}.json`, buildCreditNoteDocument(printedCreditNote({ language })));
    });

  const sumsOf = (note: Record<string, unknown>) =>
    buildCreditNoteDocument(printedCreditNote({}, { note })).sums.map(({ label, value }) => [label, value]);

  it('states where the amount goes: off the invoice, to the balance, or back to the prepaid credits', () => {
    expect(sumsOf({}).at(-1)).to.deep.equal(['Deducted from the invoice', '€59.50\u00a0EUR']);
    expect(sumsOf({ credit_note_type: 'REFUND' }).at(-1)).to.deep.equal([
      'Added to the credit balance',
      '€59.50\u00a0EUR',
    ]);
    expect(sumsOf({ credit_note_type: 'REFUND', total_prepaid_credits_returned: '20' }).slice(-2)).to.deep.equal([
      ['Prepaid credits returned', '€20.00\u00a0EUR'],
      ['Added to the credit balance', '€39.50\u00a0EUR'],
    ]);
    const all = { total_prepaid_credits_returned: '59.5' };
    expect(sumsOf(all).at(-1)).to.deep.equal(['Prepaid credits returned', '€59.50\u00a0EUR']);
  });

  it('shows below the total the tax that the amounts include', () => {
    const vat = { label: 'VAT 19%', amount: '19', is_included: true };
    const note = { total_tax: '0', total_amount: '50' };
    const shown = (taxes: (typeof vat)[]) =>
      buildCreditNoteDocument(printedCreditNote({}, { note, taxes, included_tax: new Decimal('7.98') })).sums;
    expect(shown([vat]).map(({ label, value }) => [label, value])).to.deep.include.members([
      ['Includes VAT 19%', '€7.98\u00a0EUR'],
    ]);
    expect(shown([vat, { ...vat, label: 'City 2%' }])[2]!.label).to.equal('Includes Tax');
  });

  it('includes of a line its share of the tax, and all notes of a line all of it', () => {
    const line = { amount: '100', line_item_discount: '10', included_tax_amount: '14.37', currency: 'eur' };
    const taxOf = (amount: number, before: number) =>
      computeIncludedTax({ invoice_level_discount: '0', ...line } as never, {
        amount: new Decimal(amount),
        before: new Decimal(before),
      }).toFixed();
    expect([taxOf(30, 0), taxOf(30, 30), taxOf(30, 60), taxOf(90, 0)]).to.deep.equal(['4.79', '4.79', '4.79', '14.37']);
    expect([taxOf(1, 0), taxOf(1, 1), taxOf(88, 2)]).to.deep.equal(['0.16', '0.16', '14.05']);
  });

  it('names the tax if the invoice has one', () => {
    const taxOf = (labels: readonly string[]) => {
      const taxes = labels.map((label) => ({ label, amount: '1' }));
      return buildCreditNoteDocument(printedCreditNote({}, { taxes })).sums[1]!.label;
    };
    expect(taxOf(['VAT 19%'])).to.equal('VAT 19%');
    expect(taxOf(['State 6%', 'City 2%'])).to.equal('Tax');
    expect(sumsOf({ total_tax: '0', total_amount: '50' }).map(([label]) => label)).to.deep.equal([
      'Subtotal',
      'Total credited',
      'Deducted from the invoice',
    ]);
  });

  it('is marked before and after its effect', () => {
    const markOf = (credit_note_status: string) =>
      buildCreditNoteDocument(printedCreditNote({}, { note: { credit_note_status } })).mark;
    expect(['DRAFT', 'FINALIZED', 'VOIDED'].map(markOf)).to.deep.equal(['DRAFT', null, 'VOID']);
  });
});
