/** Table of payment providers. A new one needs a file in integrations/payments and a line here. */
import { invalid } from '../../core/foundation/error.ts';
import type { PaymentGateway } from '../../core/payments/record.ts';
import type { PaymentProvider } from '../../integrations/payments/provider.ts';
import { Sandbox } from '../../integrations/payments/sandbox.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { SandboxTable } from '../../storage/models/payments/sandbox-book.ts';

export function createProvider({ postgres }: Pick<Stores, 'postgres'>, gateway: PaymentGateway): PaymentProvider {
  if (gateway === 'sandbox') return createSandbox({ postgres });
  throw invalid('payment_gateway', `${gateway} is not there yet`);
}

export function createSandbox({ postgres }: Pick<Stores, 'postgres'>): Sandbox {
  return new Sandbox(new SandboxTable(postgres));
}
