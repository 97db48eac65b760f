import { expect } from 'chai';
import {
  countDaysLeft,
  findOwnDescription,
  formatWalletName,
  isMoneyWallet,
  listBalanceSteps,
  sortLots,
} from '../../console/pages/wallets/wallet.ts';

describe('wallets of the console', () => {
  it('shows the description of a person, not the English one that the service writes', () => {
    const find = (transaction_reason: 'INVOICE_PAYMENT' | 'MANUAL_BALANCE_DEBIT', description: string | null) =>
      findOwnDescription({ transaction_reason, description } as never);
    expect(find('INVOICE_PAYMENT', 'Payment of invoice INV-1')).to.equal(null);
    expect(find('MANUAL_BALANCE_DEBIT', 'Goodwill')).to.equal('Goodwill');
    expect(find('MANUAL_BALANCE_DEBIT', '')).to.equal(null);
  });

  it('draws the balance as steps, oldest first, without movements that have not happened', () => {
    const move = (at: string, before: string, after: string, transaction_status: 'completed' | 'pending') => ({
      created_at: at,
      credit_balance_before: before,
      credit_balance_after: after,
      transaction_status,
    });
    const ledger = [
      move('2026-11-03T00:00:00.000Z', '7', '7', 'pending'),
      move('2026-11-02T00:00:00.000Z', '10', '7', 'completed'),
      move('2026-11-01T00:00:00.000Z', '0', '10', 'completed'),
    ];
    expect(listBalanceSteps(ledger)).to.deep.equal([
      { at: '2026-10-31T23:59:59.999Z', value: '0' },
      { at: '2026-11-01T00:00:00.000Z', value: '10' },
      { at: '2026-11-01T23:59:59.999Z', value: '10' },
      { at: '2026-11-02T00:00:00.000Z', value: '7' },
    ]);
  });

  it('sorts lots by expiry, and those that never expire last', () => {
    const lots = [
      { id: 'never', expiry_date: null, created_at: '1' },
      { id: 'late', expiry_date: '2027-01-01T00:00:00Z', created_at: '1' },
      { id: 'soon second', expiry_date: '2026-12-01T00:00:00Z', created_at: '2' },
      { id: 'soon', expiry_date: '2026-12-01T00:00:00Z', created_at: '1' },
    ];
    expect(sortLots(lots).map(({ id }) => id)).to.deep.equal(['soon', 'soon second', 'late', 'never']);
  });

  it('counts days until expiry, a part of a day as a whole one', () => {
    const now_ms = Date.parse('2026-11-30T12:00:00Z');
    expect(countDaysLeft('2026-12-01T00:00:00Z', now_ms)).to.equal(1);
    expect(countDaysLeft('2026-12-02T12:00:00Z', now_ms)).to.equal(2);
    expect(countDaysLeft('2026-11-28T12:00:00Z', now_ms)).to.equal(-2);
    expect(countDaysLeft(null, now_ms)).to.equal(null);
  });

  it('takes a wallet whose credit is one unit for money', () => {
    expect(isMoneyWallet({ conversion_rate: '1' })).to.equal(true);
    expect(isMoneyWallet({ conversion_rate: '1.00' })).to.equal(true);
    expect(isMoneyWallet({ conversion_rate: '0.01' })).to.equal(false);
    expect(isMoneyWallet({ conversion_rate: '10' })).to.equal(false);
  });

  it('names a wallet without a name by its currency', () => {
    expect(formatWalletName({ name: '', currency: 'usd' })).to.equal('USD');
  });
});
