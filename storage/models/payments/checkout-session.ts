import type { Scope } from '../../../core/foundation/scope.ts';
import { CheckoutSession, OPEN_CHECKOUTS } from '../../../core/payments/checkout/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CheckoutSessionModel extends CheckoutSession {}

type SessionTarget = { checkout_invoice_id: string } | { subscription_id: string } | { wallet_id: string };

export class CheckoutSessionModel extends ScopedModel {
  static override tableName = 'checkout_sessions';
  static override recordName = 'checkout session';
  static override record = CheckoutSession;
  declare subscription_id: string | null;
  declare wallet_id: string | null;
  /** Whether the invoice existed before the session, so that it stays open if the session ends unpaid. */
  declare is_invoice_retained: boolean;

  /** Finds the session that can still be paid. */
  static async findOpen(
    scope: Scope,
    target: SessionTarget,
    database: Database,
  ): Promise<CheckoutSessionModel | undefined> {
    const [found] = await CheckoutSessionModel.in(scope, database)
      .where(target)
      .whereIn('checkout_status', [...OPEN_CHECKOUTS]);
    return found;
  }
}
