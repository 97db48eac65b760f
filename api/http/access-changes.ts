/**
 * A key that is revoked, a user whose roles change, a tenant that is suspended: what this process remembers of who calls is
 * forgotten as soon as the change is committed, whichever process makes it (docs/decisions/0015-revoked-at-once.md).
 */
import { type Listener, listen } from '../../storage/postgres/listen.ts';
import { urlOf } from '../../storage/postgres/postgres.ts';
import type { Services } from '../services.ts';
import { forgetKeys } from './auth.ts';

/** As in sql/postgres/0084-access-changes.sql. */
const CHANNEL = 'access_changed';

export function hearAccessChanges(services: Services, url: string = urlOf(services.postgres)): Listener {
  return listen(url, {
    channel: CHANNEL,
    heard: (tenant_id) => forgetKeys(services, tenant_id),
    // What was told before is not told again.
    begun: () => forgetKeys(services),
    lost: (error) =>
      services.logger.warn({ err: error }, 'changes of keys are not heard: what is known of a key holds for 5 s'),
  });
}
