/**
 * Checks the alerts of one customer after its usage grew or its wallet moved (docs/rules/alerts.md, "When alerts are checked"), and runs the
 * automatic top-up of its wallets. After a change of an environment's default thresholds, it checks the wallets that use them.
 */
import { z } from 'zod';
import { checkCustomer } from '../../actions/alerts/check-alerts.ts';
import { checkWalletsWithDefaults } from '../../actions/alerts/wallet-alerts.ts';
import { topUpCustomer } from '../../actions/lifecycle/wallets/auto-top-up.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { ALERT_TASK, enqueueDefaultAlertChecks } from '../../storage/progress/alert-arrivals.ts';
import type { QueuedWork } from '../job.ts';

const Scoped = z.object({ tenant_id: z.string(), environment_id: z.string() });
const OfCustomer = Scoped.extend({ customer_id: z.string(), fills: z.boolean().default(true) });
/** Payload of a job that checks wallets with default thresholds by ascending id, beginning after `wallets_behind`. */
const ByDefault = Scoped.extend({ wallets_behind: z.string() });
const Payload = z.union([OfCustomer, ByDefault]);

export function checkAlertsWork(stores: Stores, { clock }: { clock: () => Date }): QueuedWork {
  return {
    name: ALERT_TASK,
    async run(payload, { is_last }) {
      const request = Payload.parse(payload);
      const { tenant_id, environment_id } = request;
      const scope = { tenant_id, environment_id };
      if ('wallets_behind' in request) {
        const { last, errors } = await checkWalletsWithDefaults(stores, scope, {
          after: request.wallets_behind,
          now: clock(),
        });
        // Throwing retries the failed check before the next wallets are enqueued. The last attempt enqueues them first,
        // so that a wallet that always fails does not block the others.
        if (errors.length > 0 && !is_last) throw errors[0];
        if (last !== null) await enqueueDefaultAlertChecks(stores.postgres, scope, { behind: last });
        if (errors.length > 0) throw errors[0];
        return 'completed';
      }
      const { customer_id, fills } = request;
      await checkCustomer(stores, scope, { customer_id, now: clock() });
      if (fills) await topUpCustomer(stores, scope, { customer_id, now: clock() });
      return 'completed';
    },
  };
}
