import { expect } from 'chai';
import { deriveStatusAfterOpening, resolvePaymentSettings } from '../../../core/subscriptions/payment-settings.ts';
import { COLLECTION_METHODS, PAYMENT_BEHAVIORS, type PaymentBehavior } from '../../../core/subscriptions/record.ts';

describe('payment settings', () => {
  const allowed = new Set([
    'charge_automatically allow_incomplete',
    'charge_automatically error_if_incomplete',
    'charge_automatically default_active',
    'send_invoice default_active',
    'send_invoice default_incomplete',
  ]);
  for (const collection_method of COLLECTION_METHODS) {
    for (const payment_behavior of PAYMENT_BEHAVIORS) {
      const pair = `${collection_method} ${payment_behavior}`;
      it(`${pair}: ${allowed.has(pair) ? 'allowed' : 'invalid_operation'}`, () => {
        const decide = () => resolvePaymentSettings({ collection_method, payment_behavior });
        if (allowed.has(pair)) expect(decide()).to.deep.equal({ collection_method, payment_behavior });
        else expect(decide).to.throw().with.property('code', 'invalid_operation');
      });
    }
  }

  it('has defaults, and understands the old spelling', () => {
    expect(resolvePaymentSettings({})).to.deep.equal({
      collection_method: 'charge_automatically',
      payment_behavior: 'default_active',
    });
    expect(resolvePaymentSettings({ collection_method: 'default_incomplete' })).to.deep.equal({
      collection_method: 'charge_automatically',
      payment_behavior: 'allow_incomplete',
    });
  });

  const openings: [PaymentBehavior, string | null, string][] = [
    ['allow_incomplete', '25', 'incomplete'],
    ['allow_incomplete', '0', 'active'],
    ['allow_incomplete', null, 'active'],
    ['default_incomplete', '0.01', 'incomplete'],
    ['default_active', '40', 'active'],
    ['error_if_incomplete', '0', 'active'],
  ];
  for (const [behavior, remaining, status] of openings) {
    it(`${behavior} with ${remaining ?? 'nothing'} to pay: ${status}`, () => {
      expect(deriveStatusAfterOpening(behavior, remaining)).to.equal(status);
    });
  }

  it('error_if_incomplete refuses what cannot be paid', () => {
    expect(() => deriveStatusAfterOpening('error_if_incomplete', '1')).to.throw(/error_if_incomplete/);
  });
});
