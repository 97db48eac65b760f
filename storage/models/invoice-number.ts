/**
 * Table `invoice_numbers`: one counter per tenant, environment and token. Taken inside the finalizing transaction, which
 * holds the counter's row until it ends: numbers have no gaps, because a rollback gives the number back
 * (docs/rules/invoices.md, "Numbers").
 */
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';

/**
 * The next so many numbers of this token. They begin with `start`, or go on behind the last one, so that none is given twice when the
 * start is changed. `transaction` must be the one that finalizes all of these invoices.
 */
export async function takeInvoiceNumbers(
  scope: Scope,
  { token, count, start }: { token: string; count: number; start: bigint },
  transaction: Database,
): Promise<bigint[]> {
  const answer = await transaction.raw(
    `insert into invoice_numbers (tenant_id, environment_id, token, last_number) values (?, ?, ?, ?)
     on conflict (tenant_id, environment_id, token) do update
        set last_number = greatest(invoice_numbers.last_number + ?, excluded.last_number)
     returning last_number`,
    [scope.tenant_id, scope.environment_id, token, String(start - 1n + BigInt(count)), count],
  );
  const last = BigInt(answer.rows[0].last_number);
  return Array.from({ length: count }, (_, index) => last - BigInt(count - 1 - index));
}
