/**
 * Looks at the alerts of one customer whose usage has grown, or whose wallet has moved (docs/rules/alerts.md, "When it is looked"), and fills
 * its wallets that fill themselves.
 */
import { z } from 'zod';
import { checkCustomer } from '../../actions/alerts/check-alerts.ts';
import { topUpCustomer } from '../../actions/wallets/auto-top-up.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Work } from '../job.ts';

const Payload = z.object({
  tenant_id: z.string(),
  environment_id: z.string(),
  customer_id: z.string(),
  fills: z.boolean().default(true),
});

export function checkAlertsWork(stores: Stores, { clock }: { clock: () => Date }): Work {
  return {
    name: ALERT_TASK,
    async run(payload) {
      const { customer_id, tenant_id, environment_id, fills } = Payload.parse(payload);
      const scope = { tenant_id, environment_id };
      await checkCustomer(stores, scope, { customer_id, now: clock() });
      if (fills) await topUpCustomer(stores, scope, { customer_id, now: clock() });
      return 'completed';
    },
  };
}
