/** Records that a provider can exchange, by direction: the base of a connection's `sync_config`. */

import type { SyncConfig } from '../../../core/platform/connection/sync-config.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { Exchange } from '../../../integrations/provider.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';

const NOTHING: SyncConfig = {
  plan: null,
  subscription: null,
  invoice: null,
  customer: null,
  payment: null,
  price: null,
  deal: null,
  quote: null,
};

/** Returns the base of `sync_config`. Everything is off for a destination of exports, which exchanges no records. */
export function deriveBaseConfig({ provider_type }: Pick<ConnectionModel, 'provider_type'>): SyncConfig {
  const exchanges = listCapable('account')[provider_type]?.exchanges ?? [];
  const has = (...any: Exchange[]) => any.some((exchange) => exchanges.includes(exchange));
  const inbound = has('pull', 'inbound');
  return {
    ...NOTHING,
    customer: has('customer') ? { inbound: false, outbound: true } : null,
    deal: has('deal') ? { inbound: false, outbound: true } : null,
    invoice: has('invoice') ? { inbound, outbound: true } : null,
    payment: has('invoice', 'payment_link', 'saved_card')
      ? { inbound, outbound: has('payment', 'payment_link', 'saved_card') }
      : null,
  };
}
