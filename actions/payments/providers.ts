/** Creates the payment provider of a gateway: one of the installation, or the tenant's own account at a provider. */
import { invalid } from '../../core/foundation/error.ts';
import type { PaymentGateway } from '../../core/payments/record.ts';
import { listCapable } from '../../integrations/find-capability.ts';
import type { PaymentProvider } from '../../integrations/payment-provider.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { SimulatedChargeTable } from '../../storage/models/payments/simulated-charges.ts';
import { ConnectedPayments } from './connected-payments.ts';

export function createProvider(
  { postgres, config }: Pick<Stores, 'postgres' | 'config'>,
  gateway: PaymentGateway,
): PaymentProvider {
  const payments = listCapable('payments')[gateway];
  if (payments) return payments.create({ simulated_charges: new SimulatedChargeTable(postgres) });
  if (!listCapable('account')[gateway]) throw invalid('payment_gateway', `${gateway} is not there yet`);
  return new ConnectedPayments({ postgres, config }, gateway);
}
