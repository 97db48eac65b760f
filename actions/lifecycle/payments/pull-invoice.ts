/**
 * Reads invoices as the connected providers have them (their counterparts), and records payments and refunds that happened there
 * (docs/integrations/README.md, "Reading an invoice").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { isReportFinal } from '../../../core/payments/provider-payments.ts';
import { computeFirstPull, computeNextPull } from '../../../core/platform/integration/pull-schedule.ts';
import type { ProviderInvoice } from '../../../integrations/account.ts';
import type { Postgres, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { setNextPull } from '../../../storage/queue/provider-events.ts';
import { type AccountCaller, findAccountCapability } from '../../foundation/connections/call-account.ts';
import { describeRefusal } from '../../foundation/connections/connection-runs.ts';
import { linkPayer } from '../../foundation/connections/mappings.ts';
import { emit } from '../../foundation/emit.ts';
import { lockInvoices } from '../../invoicing/invoices/lock-invoice.ts';
import { recordInvoiceReport } from './record-provider-payment.ts';

/** A mapping, and the provider's invoice as it was read; null if the provider no longer has it. */
export type PulledInvoice = { readonly mapping: IntegrationMappingModel; readonly pulled: ProviderInvoice | null };

export async function pullMapping(call: AccountCaller, mapping: IntegrationMappingModel): Promise<PulledInvoice> {
  const pulled = await call(async (account) => account.pullInvoice!(mapping.provider_entity_id!));
  return { mapping, pulled };
}

/** Locks the invoices of all mappings before the first one is changed, so that concurrent pulls cannot deadlock. */
export async function lockPulled(
  transaction: Transaction,
  { tenant_id, environment_id }: Scope,
  all: readonly PulledInvoice[],
): Promise<void> {
  const scope = { tenant_id, environment_id };
  const ids = all.map(({ mapping }) => mapping.entity_id);
  const invoices = await InvoiceModel.byId(scope, ids, transaction);
  const named = Array.from(invoices.values(), ({ id, subscription_id = null }) => ({
    invoice_id: id,
    subscription_id,
  }));
  await lockInvoices(transaction, scope, named);
}

type PullTerms = { readonly connection: ConnectionModel; readonly now: Date };

/**
 * Records the payments and refunds of one invoice at a provider. The caller has locked the invoice. Returns whether a reported payment is
 * not recorded yet, because it may belong to a charge by this service whose id at the provider is not stored so far.
 */
export async function applyPulled(
  stores: Stores,
  transaction: Transaction,
  { connection, now, mapping: seen, pulled }: PullTerms & PulledInvoice,
): Promise<{ is_money_unrecorded: boolean }> {
  const mapping = await IntegrationMappingModel.fetch(seen, seen.id, { database: transaction, lock: true });
  if (mapping.mapping_state !== 'made') return { is_money_unrecorded: false };
  if (pulled === null) {
    await setNextPull(transaction, seen, null);
    const differences = [`${connection.provider_type} no longer has it`];
    await noteDifferences(transaction, { mapping, now, differences });
    return { is_money_unrecorded: false };
  }
  const can_refund = findAccountCapability(connection).exchanges.includes('refund');
  const sent_total = mapping.sent_invoice?.amount_remaining ?? null;
  const report = { connection, can_refund, invoice_id: mapping.entity_id, sent_total, reported: pulled, now };
  const { differences, is_undecided, is_money_unrecorded } = await recordInvoiceReport(stores, transaction, report);
  if (pulled.provider_customer_id) {
    const { customer_id } = await InvoiceModel.fetch(mapping, mapping.entity_id, { database: transaction });
    const payer = { customer_id, provider_entity_id: pulled.provider_customer_id, author: { user_id: '', now } };
    await linkPayer(transaction, connection, payer);
  }
  await setNextPull(transaction, seen, chooseNextPull({ pulled, is_undecided, mapping, now }));
  await noteDifferences(transaction, { mapping, now, differences });
  return { is_money_unrecorded };
}

type NextPullInput = { pulled: ProviderInvoice; is_undecided: boolean; mapping: IntegrationMappingModel; now: Date };

function chooseNextPull({ pulled, is_undecided, mapping, now }: NextPullInput): Date | null {
  if (is_undecided) return computeFirstPull(now);
  return isReportFinal(pulled) ? null : computeNextPull({ made_at: new Date(toInstant(mapping.created_at)), now });
}

/** Records in the mapping, for a person, that the invoice cannot be read at the provider. It is read again about a day later. */
export async function recordPullFailure(
  { postgres }: Postgres,
  seen: IntegrationMappingModel,
  { error, now }: { readonly error: unknown; readonly now: Date },
): Promise<void> {
  const difference = `it cannot be read: ${describeRefusal(error)}`;
  await postgres.transaction(async (transaction) => {
    const mapping = await IntegrationMappingModel.fetch(seen, seen.id, { database: transaction, lock: true });
    if (mapping.mapping_state !== 'made') return;
    await noteDifferences(transaction, { mapping, differences: [difference], now });
    await setNextPull(transaction, seen, new Date(computeFirstPull(now).getTime() + DAY_MS));
  });
}

const REASON_LENGTH_MAX = 1_000;

/** Emits a system event for each new difference, so that a repeated pull emits none. */
export async function noteDifferences(
  transaction: Transaction,
  { mapping, differences, now }: { mapping: IntegrationMappingModel; differences: readonly string[]; now: Date },
): Promise<void> {
  const attention_reason = differences.join('; ').slice(0, REASON_LENGTH_MAX) || null;
  if (attention_reason === mapping.attention_reason) return;
  const by = { now };
  const record = await IntegrationMappingModel.change(mapping, { attention_reason }, { by, database: transaction });
  if (attention_reason !== null) await emit(transaction, 'integration_mapping.needs_attention', { record, by });
}
