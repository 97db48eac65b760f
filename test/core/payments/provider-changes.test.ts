/** docs/integrations/README.md, "Reading an invoice": another total, and credits, at the provider. */
import { expect } from 'chai';
import { planChanges } from '../../../core/payments/provider-changes.ts';
import type { ReportedInvoice } from '../../../core/payments/provider-payments.ts';

type ChangesInput = Parameters<typeof planChanges>[0];
type Row = readonly [string, Partial<ReportedInvoice>, Partial<ChangesInput>, readonly string[]];

const plan = (reported: Partial<ReportedInvoice>, input: Partial<ChangesInput>) =>
  planChanges({
    ...{ invoice: { invoice_status: 'FINALIZED', currency: 'usd' }, sent_total: '100', sent_credits: [] },
    ...{ is_crediting: false, provider_type: 'stripe' },
    reported: { invoice_status: 'open', total: '100.00', currency: 'usd', payments: [], ...reported },
    ...input,
  });
const credit = (provider_credit_id: string, amount: string, reported_credit_note_id: string | null = null) => ({
  ...{ provider_credit_id, amount, reported_credit_note_id },
});
const sent = (provider_credit_id: string, amount: string | null) => ({
  ...{ credit_note_id: 'cn_ours', provider_credit_id, amount },
});
const UNKNOWN = '30 usd of the invoice is credited at stripe, but 0 from here: cn_1 of 30 is not known here';

describe('changes of an invoice at a provider', () => {
  for (const [name, reported, input, differences] of [
    ['nothing', {}, {}, []],
    ['another total', { total: '80' }, {}, ['the total of the invoice is 80 usd at stripe, but 100 usd was sent']],
    [
      'another currency',
      { currency: 'eur' },
      {},
      ['the total of the invoice is 100 eur at stripe, but 100 usd was sent'],
    ],
    [
      'another total, also after its payment',
      { invoice_status: 'paid', total: '80' },
      {},
      ['the total of the invoice is 80 usd at stripe, but 100 usd was sent'],
    ],
    ['the total of an invoice that was linked by hand', { total: '80' }, { sent_total: null }, []],
    ['the total of a void copy', { invoice_status: 'void', total: '0' }, {}, []],
    ['a credit of a person', { credits: [credit('cn_1', '30.0')] }, {}, [UNKNOWN]],
    [
      'a credit of an invoice that was linked by hand',
      { credits: [credit('cn_1', '30')] },
      { sent_total: null },
      [UNKNOWN],
    ],
    ['a credit that was sent', { credits: [credit('cn_1', '30', 'cn_ours')] }, {}, []],
    ['a credit that was linked', { credits: [credit('cn_1', '30')] }, { sent_credits: [sent('cn_1', null)] }, []],
    ['a credit whose refund is reported', { credits: [credit('cn_1', '0')] }, {}, []],
    [
      'credits of both',
      { credits: [credit('cn_1', '30'), credit('cn_2', '25', 'cn_ours'), credit('cn_3', '5')] },
      {},
      ['60 usd of the invoice is credited at stripe, but 25 from here: cn_1 of 30, cn_3 of 5 is not known here'],
    ],
    ['a sent credit', { credits: [credit('cn_1', '30.0')] }, { sent_credits: [sent('cn_1', '30')] }, []],
    [
      'a sent credit that is applied in two parts',
      { credits: [credit('cn_1', '10'), credit('cn_1', '20')] },
      { sent_credits: [sent('cn_1', '30')] },
      [],
    ],
    [
      'a sent credit with another amount',
      { credits: [credit('cn_1', '50')] },
      { sent_credits: [sent('cn_1', '30')] },
      ['credit note cn_ours of 30 usd is 50 at stripe (cn_1)'],
    ],
    [
      'a sent credit that is gone',
      {},
      { sent_credits: [sent('cn_1', '30')] },
      ['credit note cn_ours of 30 usd is 0 at stripe (cn_1)'],
    ],
    [
      'a credit for an invoice that is void here',
      { credits: [credit('cn_1', '30')] },
      { invoice: { invoice_status: 'VOIDED', currency: 'usd' } },
      [],
    ],
  ] satisfies readonly Row[])
    it(name, () => {
      expect(plan(reported, input)).to.deep.equal({ differences, is_undecided: false });
    });

  it('waits with an unknown credit while a credit note is being sent', () => {
    const credits = [credit('cn_1', '30')];
    expect(plan({ credits }, { is_crediting: true })).to.deep.equal({ differences: [], is_undecided: true });
    const known = { is_crediting: true, sent_credits: [sent('cn_1', null)] };
    expect(plan({ credits }, known)).to.deep.equal({ differences: [], is_undecided: false });
  });
});
