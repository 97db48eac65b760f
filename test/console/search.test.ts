import { expect } from 'chai';
import { filterActions, isNamed } from '../../console/pages/search/actions.ts';
import { addRecent, type FoundItem, groupHits, toRecordPath } from '../../console/pages/search/hits.ts';
import { STATUS_TEXTS, toStatusWord } from '../../console/pages/search/status-word.ts';
import { WALLET_STATUSES } from '../../core/credits/wallet/record.ts';
import { CREDIT_NOTE_STATUSES } from '../../core/invoicing/credit-note/record.ts';
import { INVOICE_STATUSES, PAYMENT_STATUSES } from '../../core/invoicing/invoice/record.ts';
import { SUBSCRIPTION_STATUSES } from '../../core/subscriptions/record.ts';

const hit = (kind: FoundItem['kind'], id: string): FoundItem => ({
  kind,
  id,
  title: id,
  subtitle: null,
  status: null,
  matched: 'id',
  customer_id: null,
});

describe('search of the console', () => {
  it('puts the kind of the best hit first and the others in their order', () => {
    const groups = groupHits([hit('invoice', 'i1'), hit('plan', 'p1'), hit('customer', 'c1'), hit('invoice', 'i2')]);
    expect(groups.map(({ kind, hits }) => [kind, hits.map(({ id }) => id)])).to.deep.equal([
      ['invoice', ['i1', 'i2']],
      ['customer', ['c1']],
      ['plan', ['p1']],
    ]);
  });

  for (const [kind, id, path] of [
    ['customer', 'cust_1', 'customers/cust_1'],
    ['event', 'a b&c', 'events?event=a%20b%26c'],
    ['wallet', 'wallet_1', 'wallets/wallet_1'],
    ['price', 'price_1', null],
    ['payment', 'pay_1', null],
  ] as const)
    it(`opens a ${kind} at ${path ?? 'the page of its owner'}`, () => {
      expect(toRecordPath({ kind, id })).to.equal(path);
    });

  it('finds actions by the beginnings of their words, in any order', () => {
    const actions = [
      { label: 'New meter…' },
      { label: 'Go to meters' },
      { label: 'Switch to Acme', words: 'production' },
    ];
    const find = (text: string) => filterActions(actions, text).map(({ label }) => label);
    expect(find('met')).to.deep.equal(['New meter…', 'Go to meters']);
    expect(find('meter new')).to.deep.equal(['New meter…']);
    expect(find('prod')).to.deep.equal(['Switch to Acme']);
    expect(find('eter')).to.deep.equal([]);
    expect(find('')).to.have.length(3);
  });

  it('calls an action named from three letters on', () => {
    expect(isNamed({ label: 'Dark theme' }, 'dar')).to.equal(true);
    expect(isNamed({ label: 'Dark theme' }, 'da')).to.equal(false);
    expect(isNamed({ label: 'Dark theme' }, 'theme')).to.equal(false);
  });

  it('lists a record that is opened twice once, at the top, and six at most', () => {
    const ids = ['1', '2', '3', '4', '5', '6', '7', '3'];
    const recent = ids.reduce<FoundItem[]>((list, id) => addRecent(list, hit('plan', id)) as FoundItem[], []);
    expect(recent.map(({ id }) => id)).to.deep.equal(['3', '7', '6', '5', '4', '2']);
  });

  it('names a status only where it says something', () => {
    expect(toStatusWord('published')).to.equal(null);
    expect(toStatusWord('PARTIALLY_REFUNDED')).to.equal('Partially refunded');
    expect(toStatusWord('PARTIALLY_REFUNDED', STATUS_TEXTS.de)).to.equal('Teilweise erstattet');
    expect(toStatusWord('of_a_later_version')).to.equal('of_a_later_version');
    expect(toStatusWord(null)).to.equal(null);
  });

  it('has a word for each status of a record that the search finds', () => {
    const statuses = [
      ...[SUBSCRIPTION_STATUSES, INVOICE_STATUSES, PAYMENT_STATUSES, WALLET_STATUSES, CREDIT_NOTE_STATUSES].flat(),
      'archived',
      'deleted',
    ];
    const unknown = statuses.map((status) => status.toLowerCase()).filter((status) => toStatusWord(status) === status);
    expect(unknown).to.deep.equal([]);
  });
});
