/**
 * Workers for one connection to a provider, each for one time slice: one pushes pending records, one reads inbound
 * events and due invoices.
 */
import { z } from 'zod';
import { readProvider } from '../../actions/delivery/inbound/read-provider.ts';
import { pushPending } from '../../actions/delivery/integrations/push-pending.ts';
import type { AccountCallSettings } from '../../actions/foundation/connections/call-account.ts';
import type { ConnectionRun } from '../../actions/foundation/connections/connection-runs.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { PUSH_TASK } from '../../storage/queue/pending-pushes.ts';
import { READ_TASK } from '../../storage/queue/provider-events.ts';
import type { QueuedWork } from '../job.ts';

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), connection_id: z.string() });

const RUNS: Readonly<Record<string, (stores: Stores, scope: Scope, run: ConnectionRun) => Promise<unknown>>> = {
  [PUSH_TASK]: pushPending,
  [READ_TASK]: readProvider,
};

type ConnectionWorkOptions = { readonly clock: () => Date; readonly settings: AccountCallSettings };

export function createConnectionWork(stores: Stores, { clock, settings }: ConnectionWorkOptions): QueuedWork[] {
  return Object.entries(RUNS).map(([name, run]) => ({
    name,
    lane: 'providers',
    async run(payload, { mayGoOn }) {
      const { connection_id, ...scope } = Payload.parse(payload);
      await run(stores, scope, { connection_id, settings, clock, mayGoOn });
      return 'completed';
    },
  }));
}
