/**
 * Previews a change by the change itself, in a transaction that is rolled back (docs/decisions/0037-previews.md). So the preview cannot differ from the change. It draws no
 * number and calls no provider; system events and jobs are rolled back, too.
 */
import type { Author } from '../../core/foundation/stamp.ts';
import { collectNewIds } from '../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { runBillingTransaction } from './transaction.ts';

type Preview<Made, Answer> = {
  readonly change: (transaction: Transaction) => Promise<Made>;
  /** Builds the answer inside the transaction, where the records exist. */
  readonly show: (made: Made, database: Transaction) => Promise<Answer>;
};

/** Request of a preview, and the answer that shows what it would make. */
export type ChangePreview<Request, Made, Answer> = {
  readonly request: Request;
  readonly author: Author;
  readonly show: Preview<Made, Answer>['show'];
};

/** Returns the answer with empty ids in place of those of records that the change would create, and without their numbers. */
export async function previewChange<Made, Answer>(
  stores: Stores,
  { change, show }: Preview<Made, Answer>,
): Promise<Answer> {
  const work = async (transaction: Transaction) => show(await change(transaction), transaction);
  const { result, ids } = await collectNewIds(() => runBillingTransaction(stores, work, () => false));
  return withoutIdentity(result, ids) as Answer;
}

function withoutIdentity(value: unknown, ids: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return value.replaceAll(ID, (id) => (ids.has(id) ? '' : id));
  if (Array.isArray(value)) return value.map((one) => withoutIdentity(one, ids));
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  const fields = Object.entries(value).map(([key, inner]) => [key, withoutIdentity(inner, ids)]);
  return { ...Object.fromEntries(fields), ...withoutNumber(value, ids) };
}

const ID = /[a-z_]+_[0-9A-Z]{26}/g;

/** Returns the unset number of a new record, and its key if that was made of an id. */
function withoutNumber(record: object, ids: ReadonlySet<string>): object {
  const { id, invoice_number, idempotency_key } = record as Record<string, unknown>;
  if (!ids.has(String(id))) return {};
  const isOwnKey = typeof idempotency_key === 'string' && withoutIdentity(idempotency_key, ids) === idempotency_key;
  return {
    ...(invoice_number === undefined ? {} : { invoice_number: null }),
    ...(idempotency_key === undefined || isOwnKey ? {} : { idempotency_key: null }),
  };
}
