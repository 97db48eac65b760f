/**
 * Tests the stored credentials with the provider, which returns their account. A success makes a connection active that
 * needed attention.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { AccountIdentity } from '../../../integrations/account.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { activateConnection } from '../../foundation/connections/activate-connection.ts';
import {
  type AccountCallSettings,
  findAccountCapability,
  prepareCalls,
  toAnswerError,
} from '../../foundation/connections/call-account.ts';
import { chooseAccountId } from './same-account.ts';

type ConnectionTest = { readonly id: string; readonly settings: AccountCallSettings; readonly author: Author };

export async function testConnection(
  { postgres }: Postgres,
  scope: Scope,
  { id, settings, author }: ConnectionTest,
): Promise<AccountIdentity> {
  const connection = await ConnectionModel.fetchPublished(scope, id, { database: postgres });
  findAccountCapability(connection);
  const call = await prepareCalls({ postgres }, connection, { settings, by: author });
  let identity: AccountIdentity;
  try {
    identity = await call((account) => account.identify());
  } catch (error) {
    throw toAnswerError(error, connection);
  }
  await postgres.transaction(async (database) => {
    const current = await ConnectionModel.fetchPublished(scope, id, { database, lock: true });
    // If other credentials were stored during this test, the result says nothing about them.
    if (current.secret !== connection.secret) return;
    const provider_account_id = chooseAccountId(current, identity);
    await activateConnection(database, current, { changes: { provider_account_id }, by: author });
  });
  return identity;
}
