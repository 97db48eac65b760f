/** Makes the idempotency keys of all requests to providers a day older, as the database measures it. */
import type { Database } from '../../../storage/foundation/stores.ts';

export async function ageKeys(postgres: Database): Promise<void> {
  const day = "interval '1 day'";
  for (const [table, column] of [
    ['payments', 'requested_at'],
    ['payment_refunds', 'requested_at'],
    ['integration_mappings', 'key_created_at'],
  ] as const)
    await postgres.raw(`update ${table} set ${column} = ${column} - ${day} where ${column} is not null`);
}
