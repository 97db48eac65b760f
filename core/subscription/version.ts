/** Naming the version that was read refuses what came in between (docs/rules/subscriptions.md, "One change at a time"). */
import { FarthingError } from '../error.ts';
import type { Subscription } from './record.ts';

/** `version`: none where the request names none. To be asked with the subscription held, before anything is done to it. */
export function checkVersion(
  version: number | null | undefined,
  subscription: Pick<Subscription, 'id' | 'version'>,
): void {
  if (!version || version === subscription.version) return;
  throw new FarthingError('version_conflict', `subscription ${subscription.id} has version ${subscription.version}`, {
    details: { version: subscription.version },
  });
}
