/**
 * Table `invoice_numbers`: one counter per tenant, environment and token. The finalizing transaction locks the counter's row until
 * it ends. So numbers have no gaps: a rollback returns the number (docs/rules/invoices.md, "Numbers").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';

/**
 * Takes the next `count` numbers of this token. They begin with `start` or after the last one, whichever is greater, so that a
 * changed start never repeats a number. `transaction` must be the one that finalizes all of these invoices.
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
