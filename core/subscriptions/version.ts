/**
 * A request that names an outdated version is refused, because another change came in between
 * (docs/rules/subscriptions.md, "One change at a time").
 */
import { FarthingError } from '../foundation/error.ts';
import type { Subscription } from './record.ts';

/**
 * Throws if the request names an outdated version; a request without `version` is not checked. The caller locks the
 * subscription first and checks before any change.
 */
export function checkVersion(
  version: number | null | undefined,
  subscription: Pick<Subscription, 'id' | 'version'>,
): void {
  if (version === undefined || version === null || version === subscription.version) return;
  throw new FarthingError('version_conflict', `subscription ${subscription.id} has version ${subscription.version}`, {
    details: { version: subscription.version },
  });
}
