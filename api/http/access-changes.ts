/**
 * Clears this process's cache of callers as soon as a key is revoked, a user's roles change or a tenant is suspended. The notification
 * arrives on commit, whichever process makes the change (docs/decisions/0022-tenant-isolation.md).
 */

import { clearClocks } from '../../storage/models/schedule/environment-clock.ts';
import { listen, type PostgresListener } from '../../storage/postgres/pool/listen.ts';
import { readUrl } from '../../storage/postgres/pool/postgres.ts';
import { forgetKeys } from './auth.ts';
import type { Services } from './services.ts';

/** Channel name in sql/postgres/0084-access-changes.sql. */
const CHANNEL = 'access_changed';

export function listenForAccessChanges(services: Services, url: string = readUrl(services.postgres)): PostgresListener {
  return listen(url, {
    channel: CHANNEL,
    heard: (tenant_id) => forget(services, tenant_id),
    // Notifications from before the connection are lost, so all cached callers are cleared.
    begun: () => forget(services),
    lost: (error) =>
      services.logger.warn({ err: error }, 'changes of keys are not heard: what is known of a key holds for 5 s'),
  });
}

/**
 * Clears the caches of a tenant, or of all tenants. Also clears the cached fact that an environment has no test clock,
 * because a new clock is announced on this channel (sql/postgres/0086-test-clocks.sql).
 */
function forget(services: Services, tenant_id?: string): void {
  forgetKeys(services, tenant_id);
  clearClocks(services.postgres);
}
