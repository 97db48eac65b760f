/**
 * Table `invoice_numbers`: one counter per tenant, environment and token. Taken inside the finalizing transaction, which
 * holds the counter's row until it ends: numbers have no gaps, because a rollback gives the number back
 * (docs/rules/invoices.md, "Numbers").
 */
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';

/** The next number of this token, 1 for the first. `transaction` must be the one that finalizes the invoice. */
export async function takeInvoiceNumber(scope: Scope, token: string, transaction: Database): Promise<bigint> {
  const answer = await transaction.raw(
    `insert into invoice_numbers (tenant_id, environment_id, token, last_number) values (?, ?, ?, 1)
     on conflict (tenant_id, environment_id, token) do update set last_number = invoice_numbers.last_number + 1
     returning last_number`,
    [scope.tenant_id, scope.environment_id, token],
  );
  return BigInt(answer.rows[0].last_number);
}
