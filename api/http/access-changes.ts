/**
 * A key that is revoked, a user whose roles change, a tenant that is suspended: what this process remembers of who calls is
 * forgotten as soon as the change is committed, whichever process makes it (docs/decisions/0022-tenant-isolation.md).
 */

import { clearClocks } from '../../storage/environment-clock.ts';
import { listen, type PostgresListener } from '../../storage/postgres/listen.ts';
import { readUrl } from '../../storage/postgres/postgres.ts';
import type { Services } from '../services.ts';
import { forgetKeys } from './auth.ts';

/** As in sql/postgres/0084-access-changes.sql. */
const CHANNEL = 'access_changed';

export function listenForAccessChanges(services: Services, url: string = readUrl(services.postgres)): PostgresListener {
  return listen(url, {
    channel: CHANNEL,
    heard: (tenant_id) => forget(services, tenant_id),
    // What was told before is not told again.
    begun: () => forget(services),
    lost: (error) =>
      services.logger.warn({ err: error }, 'changes of keys are not heard: what is known of a key holds for 5 s'),
  });
}

/** That an environment has no clock of its own is told on the same channel to be so no more (sql/postgres/0086-test-clocks.sql). */
function forget(services: Services, tenant_id?: string): void {
  forgetKeys(services, tenant_id);
  clearClocks(services.postgres);
}
