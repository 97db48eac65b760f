/** Records an attempt to close a void page at its provider (docs/rules/checkout.md, "Pages that stay open"). */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import { type ClosingResult, describeUnclosedPage, planPageClosing } from '../../../core/payments/page-closing.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { listAccountConnections } from '../../foundation/connections/find-connections.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { cancelPageClosing } from '../../payments/cancel-page-closing.ts';
import type { ProviderOutcome } from './provider-outcome.ts';

/**
 * Outcome of the attempt to close the page; null if the provider has no page. A paid page never gets here, because its payment is refunded.
 */
type PageOutcome = Exclude<ProviderOutcome, { outcome: 'succeeded' }> | null;

export function recordPageClosing(
  stores: Stores,
  seen: PaymentModel,
  { outcome, by }: { outcome: PageOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  return retryTransaction(stores, async (transaction) => {
    const page = await PaymentModel.fetch(seen, seen.id, { database: transaction, lock: true });
    // Nothing is left to close: during the call the page was paid, so that its refund is due, or the connection was archived.
    if (page.next_attempt_at === null || new Decimal(page.refunded_amount).gt(0)) return page;
    const connections = await listAccountConnections(page, transaction);
    const connection = connections.find(({ provider_type }) => provider_type === page.payment_gateway);
    const gateway = page.payment_gateway!;
    if (!connection && !listOwnGateways()[gateway]) return cancelPageClosing(transaction, page, { gateway, by });
    // The page's id at the provider is stored, because a later notification about the page finds the payment by it.
    const gateway_payment_id = findPageId(outcome) ?? page.gateway_payment_id ?? null;
    const closing = deriveResult({ ...page, gateway_payment_id }, { outcome, connection, now: by.now });
    const changes = { ...planPageClosing(page, closing, by.now), gateway_payment_id };
    const record = await PaymentModel.change(page, changes, { by, database: transaction });
    const isNews = record.close_failures > 0 !== page.close_failures > 0;
    if (isNews) await emit(transaction, 'payment.updated', { record, by });
    return record;
  });
}

function findPageId(outcome: PageOutcome): string | null {
  return (outcome && 'gateway_payment_id' in outcome && outcome.gateway_payment_id) || null;
}

type ClosingAttempt = {
  readonly outcome: PageOutcome;
  readonly connection: ConnectionModel | undefined;
  readonly now: Date;
};

function deriveResult(
  page: Pick<PaymentModel, 'id' | 'voided_at' | 'payment_gateway'> & { readonly gateway_payment_id: string | null },
  { outcome, connection, now }: ClosingAttempt,
): ClosingResult {
  if (outcome === null) return { result: isLongVoid(page, now) ? 'closed' : 'unopened' };
  const isMissing = page.gateway_payment_id !== null && outcome.outcome === 'unknown' && isMissingThere(outcome);
  if (outcome.outcome === 'failed' || isMissing) return { result: 'closed' };
  const why = outcome.outcome === 'unknown' ? outcome.error : 'it is open there, or a payment on it has no outcome yet';
  const about = { gateway: page.payment_gateway!, connection_id: connection?.id ?? null, why };
  return { result: 'open', error_message: describeUnclosedPage(page, about) };
}

/** Whether the payment has been void for an hour; then no process is still about to open the page. */
function isLongVoid({ voided_at }: Pick<PaymentModel, 'voided_at'>, now: Date): boolean {
  return !voided_at || Date.parse(voided_at) < now.getTime() - HOUR_MS;
}

/** Whether the provider no longer has the page. */
function isMissingThere({ failure }: Extract<ProviderOutcome, { outcome: 'unknown' }>): boolean {
  return failure?.cause instanceof ProviderError && failure.cause.is_missing;
}
