import { expect } from 'chai';
import { formatAddress } from '../../../../core/invoicing/document/party.ts';

describe('an address on a document', () => {
  const address = { line1: 'Domstraße 1', postal_code: '50667', city: 'Köln', state: 'NRW' };

  it('ends with the name of the country in the language of the document', () => {
    expect(formatAddress({ ...address, country: 'DE' }, 'en')).to.deep.equal([
      'Domstraße 1',
      '50667 Köln, NRW',
      'Germany',
    ]);
    expect(formatAddress({ ...address, country: 'de' }, 'fr').at(-1)).to.equal('Allemagne');
    expect(formatAddress({ country: 'JP' }, 'uk')).to.deep.equal(['Японія']);
  });

  it('shows a country that is no code as it is, and omits missing parts', () => {
    expect(formatAddress({ city: 'London', country: 'United Kingdom' }, 'en')).to.deep.equal([
      'London',
      'United Kingdom',
    ]);
    expect(formatAddress({ country: 'ZQ' }, 'en')).to.deep.equal(['ZQ']);
    expect(formatAddress({ line1: null, city: '', country: null }, 'en')).to.deep.equal([]);
  });
});
