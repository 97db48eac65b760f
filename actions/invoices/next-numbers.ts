/** The next numbers of invoices, by the setting of the environment (docs/rules/invoices.md, "Numbers"). */
import { formatInvoiceNumber, numberToken } from '../../core/invoice/number.ts';
import type { Scope } from '../../core/scope.ts';
import { takeInvoiceNumbers } from '../../storage/models/invoice-number.ts';
import { settingOf } from '../../storage/models/setting.ts';
import type { Transaction } from '../../storage/stores.ts';

/** The transaction is the one that finalizes: their counter stays locked from here to the commit. */
export async function nextNumbers(
  transaction: Transaction,
  scope: Scope,
  { count, now }: { count: number; now: Date },
): Promise<string[]> {
  const config = await settingOf(scope, 'invoice_config', transaction);
  const token = numberToken(config, now.getTime());
  const start = BigInt(config.start_sequence);
  const numbers = await takeInvoiceNumbers(scope, { token, count, start }, transaction);
  return numbers.map((number) => formatInvoiceNumber(config, token, number - start + 1n));
}
