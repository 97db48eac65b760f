/**
 * Processes the due inbound events of a connection, and then pulls the invoices and customers that are due
 * (docs/integrations/README.md, "Webhooks of providers", "Reading an invoice" and "Mappings"). A failed provider pauses
 * the connection; refused credentials stop it.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { isMoneyRead, isSynced } from '../../../core/platform/connection/sync-config.ts';
import { computeEventRetryAt } from '../../../core/platform/integration/provider-event.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { ProviderEventModel } from '../../../storage/models/delivery/provider-event.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import {
  continueReadJob,
  endEvent,
  findDueEvent,
  findDuePull,
  setNextPull,
} from '../../../storage/queue/provider-events.ts';
import { type AccountCallSettings, canCall, prepareCalls } from '../../foundation/connections/call-account.ts';
import {
  type ConnectionRun,
  describeRefusal,
  endPause,
  pauseConnection,
} from '../../foundation/connections/connection-runs.ts';
import { applyPulled, lockPulled, pullMapping, recordPullFailure } from '../../lifecycle/payments/pull-invoice.ts';
import { processEvent, UnknownRecord } from './process-event.ts';
import { applyMethods, listMethods } from './pull-customer.ts';

/**
 * How the run ended. `stopped` means that a person has to act first, `paused` that the periodic sweep resumes after the
 * pause, and `continued` that another job reads the rest.
 */
type ReadProviderResult = { readonly ended: 'done' | 'stopped' | 'paused' | 'continued'; readonly read: number };

export async function readProvider(
  stores: Stores,
  scope: Scope,
  { connection_id, settings, clock, mayGoOn }: ConnectionRun,
): Promise<ReadProviderResult> {
  const { postgres } = stores;
  const isCalled = await canCall(stores, scope);
  for (let read = 0; ; read++) {
    const connection = await ConnectionModel.fetch(scope, connection_id, { database: postgres });
    if (!isCalled || connection.status !== 'published' || connection.connection_state !== 'active')
      return { ended: 'stopped', read };
    const now = clock();
    if (connection.paused_until && new Date(connection.paused_until) > now) return { ended: 'paused', read };
    const event = await findDueEvent(postgres, scope, { connection_id, now });
    const mapping = event ? undefined : await findDuePull(postgres, scope, { connection_id, now });
    if (!event && !mapping) return { ended: 'done', read };
    if (!(await mayGoOn())) {
      await postgres.transaction((transaction) => continueReadJob(transaction, connection));
      return { ended: 'continued', read };
    }
    const step = event
      ? { work: () => processEvent(stores, { connection, event, settings, now }), event }
      : { work: () => pullDue(stores, { connection, mapping: mapping!, settings, now }), mapping: mapping! };
    if ((await runStep(stores, connection, { ...step, now })) === 'stopped') return { ended: 'stopped', read };
  }
}

type ReadStep = {
  readonly work: () => Promise<void>;
  readonly event?: ProviderEventModel;
  readonly mapping?: IntegrationMappingModel;
  readonly now: Date;
};

async function runStep(
  stores: Stores,
  connection: ConnectionModel,
  { work, event, mapping, now }: ReadStep,
): Promise<'stopped' | void> {
  try {
    await work();
    await endPause(stores, connection);
  } catch (error) {
    if (error instanceof ProviderError && error.is_unauthorized) return 'stopped';
    if (error instanceof ProviderError && error.error_class === 'wait' && !error.is_of_record) {
      await pauseConnection(stores, connection, { error, now });
      // The failed record moves to the end of the queue, so that after the pause others are read first.
      if (event) await postponeEvent(stores, event, now);
      if (mapping) await setNextPull(stores.postgres, mapping, now);
      return;
    }
    if (event) return recordEventFailure(stores, event, { error, now });
    await recordPullFailure(stores, mapping!, { error, now });
  }
}

type PullInput = {
  readonly connection: ConnectionModel;
  readonly mapping: IntegrationMappingModel;
  readonly settings: AccountCallSettings;
  readonly now: Date;
};

async function pullDue(stores: Stores, { connection, mapping, settings, now }: PullInput): Promise<void> {
  if (!isPulled(connection, mapping)) {
    // The connection's `sync_config` excludes the record. As this setting may be changed, the mapping is checked again in a day.
    await setNextPull(stores.postgres, mapping, new Date(now.getTime() + DAY_MS));
    return;
  }
  const call = await prepareCalls(stores, connection, { settings, by: { now } });
  if (mapping.entity_type === 'customer') {
    const methods = await listMethods(call, mapping);
    await retryTransaction(stores, (transaction) => applyMethods(transaction, { mapping, methods, now }));
    return;
  }
  const pulled = await pullMapping(call, mapping);
  await retryTransaction(stores, async (transaction) => {
    await lockPulled(transaction, connection, [pulled]);
    await applyPulled(stores, transaction, { ...pulled, connection, now });
  });
}

function isPulled({ sync_config }: ConnectionModel, { entity_type }: IntegrationMappingModel): boolean {
  if (entity_type === 'customer') return isMoneyRead(sync_config);
  return isSynced(sync_config, { entity: 'invoice', direction: 'inbound' });
}

async function postponeEvent({ postgres }: Stores, event: ProviderEventModel, now: Date): Promise<void> {
  const changes = { event_state: 'received', reason: event.reason, processed_at: null, next_attempt_at: now } as const;
  await endEvent(postgres, event, changes);
}

type StepFailure = { readonly error: unknown; readonly now: Date };

async function recordEventFailure(
  { postgres }: Stores,
  event: ProviderEventModel,
  { error, now }: StepFailure,
): Promise<void> {
  const is_unknown = error instanceof UnknownRecord;
  const reason = is_unknown ? error.message : describeRefusal(error);
  const attempt_count = event.attempt_count + 1;
  const next_attempt_at = computeEventRetryAt(attempt_count, { now, is_unknown });
  const event_state = next_attempt_at !== null ? 'received' : is_unknown ? 'ignored' : 'failed';
  await endEvent(postgres, event, { event_state, reason, processed_at: null, attempt_count, next_attempt_at });
}
