import { expect } from 'chai';
import { deriveLevel, findOnlyCurrency, listAddressLines, splitIds } from '../../console/pages/customers/customer.ts';
import { toBody, toDraft } from '../../console/pages/customers/customer-draft.ts';
import { nameLines } from '../../console/pages/customers/preview-lines.ts';

type Customer = NonNullable<Parameters<typeof toDraft>[0]>;
const customer = {
  external_id: 'acme',
  name: 'Acme',
  email: '',
  address_country: 'DE',
  timezone: 'UTC',
  tax_exempt: 'none',
  tax_ids: [{ type: 'eu_vat', value: 'DE1' }],
} as unknown as Customer;

describe('customers of the console', () => {
  it('sends only fields that differ, trimmed, and the country in capitals', () => {
    const draft = toDraft(customer);
    expect(toBody(draft, customer)).to.deep.equal({});
    const changed = { ...draft, name: ' Acme AG ', address_country: 'at', tax_exempt: 'reverse' as const };
    expect(toBody(changed, customer)).to.deep.equal({ name: 'Acme AG', address_country: 'AT', tax_exempt: 'reverse' });
  });

  it('takes a country away with null, and drops tax numbers that are empty', () => {
    const draft = { ...toDraft(customer), address_country: '', tax_ids: [{ type: '', value: ' ' }] };
    expect(toBody(draft, customer)).to.deep.equal({ address_country: null, tax_ids: [] });
  });

  it('names the currency of a page only if there is one', () => {
    const usd = { currency: 'usd', amount: '1' };
    const row = (owed: (typeof usd)[], balance: (typeof usd)[] = []) => ({ owed, overdue: [], balance });
    expect(findOnlyCurrency([row([usd]), row([], [usd])])).to.equal('usd');
    expect(findOnlyCurrency([row([usd]), row([{ currency: 'eur', amount: '1' }])])).to.equal(null);
    expect(findOnlyCurrency([row([])])).to.equal(null);
  });

  it('splits ids into portions', () => {
    expect(splitIds(['1', '2', '3', '4', '5'], 2)).to.deep.equal([['1', '2'], ['3', '4'], ['5']]);
    expect(splitIds([], 2)).to.deep.equal([]);
  });

  it('writes an address without its empty lines', () => {
    const address = {
      address_line1: 'Weg 1',
      address_line2: '',
      address_city: 'Bern',
      address_state: 'BE',
      address_postal_code: '3000',
      address_country: 'CH',
    };
    const name = (code: string) => `<${code}>`;
    expect(listAddressLines(address, name)).to.deep.equal(['Weg 1', '3000 Bern, BE', '<CH>']);
    const none = Object.fromEntries(Object.keys(address).map((key) => [key, ''])) as typeof address;
    expect(listAddressLines(none, name)).to.deep.equal([]);
  });

  for (const [percent, level] of [
    [0, 'free'],
    [79.99, 'free'],
    [80, 'near'],
    [99.99, 'near'],
    [100, 'full'],
    [100.01, 'over'],
  ] as const)
    it(`calls ${percent} % ${level}`, () => {
      expect(deriveLevel(percent)).to.equal(level);
    });

  it('names lines of a preview by their subscription line, also repeated ones', () => {
    const line = (subscription_line_item_id: string | null, price_id: string | null) => ({
      id: '',
      subscription_line_item_id,
      price_id,
    });
    const preview = { id: '', line_items: [line('a', 'p'), line('a', 'p'), line(null, 'p'), line(null, null)] };
    const named = nameLines(preview as unknown as Parameters<typeof nameLines>[0], 'subs_1');
    expect(named.id).to.equal('subs_1');
    expect(named.line_items?.map(({ id }) => id)).to.deep.equal(['a', 'a-2', 'p', 'line']);
  });
});
