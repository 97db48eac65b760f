/** Compares a request with the session that has its idempotency key (docs/rules/checkout.md, "Once per key"). */
import type { CheckoutConfiguration, CheckoutSession } from './record.ts';

type RequestedSession = Pick<CheckoutSession, 'customer_id' | 'action' | 'payment_provider'> & {
  readonly configuration: Partial<CheckoutConfiguration>;
};

/** Ids that this service adds to stored parameters; they are ignored in the comparison. */
const ADDED = { create_subscription_params: 'subscription_id', wallet_topup_params: 'wallet_transaction_id' } as const;

/** Returns the first field that differs; null if the requests are equal. */
export function findDifferingField(session: CheckoutSession, requested: RequestedSession): string | null {
  const fields = ['customer_id', 'action', 'payment_provider'] as const;
  const field = fields.find((one) => session[one] !== requested[one]);
  if (field) return field;
  for (const [params, added] of Object.entries(ADDED) as [keyof typeof ADDED, string][]) {
    const stored = toComparable(session.configuration?.[params], added);
    if (stored !== toComparable(requested.configuration[params], added)) return `configuration.${params}`;
  }
  return null;
}

function toComparable(params: object | null | undefined, added: string): string {
  const entries = Object.entries(params ?? {}).filter(([field, value]) => field !== added && value !== null);
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
