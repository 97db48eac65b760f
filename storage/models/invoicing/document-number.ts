/**
 * Tables `invoice_numbers` and `credit_note_numbers`: one counter per tenant, environment and token. The finalizing transaction locks the
 * counter's row until it ends. So numbers have no gaps: a rollback returns the number (docs/rules/invoices.md, "Numbers").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { CreditNoteModel } from './credit-note.ts';
import { InvoiceModel } from './invoice.ts';

export type NumberSeries = 'invoice' | 'credit_note';

/**
 * Takes the next `count` numbers of this token. They begin with `start` or after the last one, whichever is greater, so that a
 * changed start never repeats a number. `transaction` must be the one that finalizes all of these documents.
 */
export async function takeDocumentNumbers(
  scope: Scope,
  { series, token, count, start }: { series: NumberSeries; token: string; count: number; start: bigint },
  transaction: Database,
): Promise<bigint[]> {
  const counters = `${series}_numbers`;
  const answer = await transaction.raw(
    `insert into ${counters} (tenant_id, environment_id, token, last_number) values (?, ?, ?, ?)
     on conflict (tenant_id, environment_id, token) do update
        set last_number = greatest(${counters}.last_number + ?, excluded.last_number)
     returning last_number`,
    [scope.tenant_id, scope.environment_id, token, String(start - 1n + BigInt(count)), count],
  );
  const last = BigInt(answer.rows[0].last_number);
  return Array.from({ length: count }, (_, index) => last - BigInt(count - 1 - index));
}

/** Locks the counter of the token until the transaction ends, without a change of its number. */
export async function lockDocumentNumbers(
  { tenant_id, environment_id }: Scope,
  { series, token, start }: { series: NumberSeries; token: string; start: bigint },
  transaction: Database,
): Promise<void> {
  const counters = `${series}_numbers`;
  await transaction.raw(
    `insert into ${counters} (tenant_id, environment_id, token, last_number) values (?, ?, ?, ?)
     on conflict (tenant_id, environment_id, token) do update set last_number = ${counters}.last_number`,
    [tenant_id, environment_id, token, String(start - 1n)],
  );
}

/** Returns those of the numbers that a document has already. */
export async function findTakenNumbers(
  scope: Scope,
  { series, numbers }: { series: NumberSeries; numbers: readonly string[] },
  database: Database,
): Promise<Set<string>> {
  if (series === 'invoice') {
    const invoices = await InvoiceModel.in(scope, database)
      .whereIn('invoice_number', [...numbers])
      .select('invoice_number');
    return new Set(invoices.flatMap(({ invoice_number }) => invoice_number ?? []));
  }
  const notes = await CreditNoteModel.in(scope, database)
    .whereIn('credit_note_number', [...numbers])
    .select('credit_note_number');
  return new Set(notes.map(({ credit_note_number }) => credit_note_number));
}
