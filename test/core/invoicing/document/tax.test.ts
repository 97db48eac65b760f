import { expect } from 'chai';
import { formatTaxLabel } from '../../../../core/invoicing/document/tax.ts';

describe('the label of a tax', () => {
  // [name, percentage, label]
  const CASES = [
    ['VAT', '19', 'VAT 19%'],
    ['VAT 19%', '19', 'VAT 19%'],
    ['MwSt 7,70 %', '7.7', 'MwSt 7,70 %'],
    ['VAT 19% (reduced)', '7', 'VAT 19% (reduced) 7%'],
    ['Zone 19', '19', 'Zone 19 19%'],
    ['Levy', null, 'Levy'],
  ] as const;
  for (const [name, percentage_value, label] of CASES)
    it(label, () => expect(formatTaxLabel({ name, percentage_value })).to.equal(label));
});
