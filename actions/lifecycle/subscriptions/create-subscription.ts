/**
 * Subscribes a customer to a plan: record, line items, overridden prices and, unless it is a draft, the opening invoice, all or nothing
 * (docs/rules/subscriptions.md, "The opening").
 */
import { checkStartAfterFormerHolder } from '../../../core/catalog/customer/former-holder.ts';
import { prefixField } from '../../../core/foundation/error.ts';
import { checkCurrency } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { planScheduledPrices } from '../../../core/subscriptions/ahead.ts';
import { findOpening, planFirstPeriod } from '../../../core/subscriptions/calendar.ts';
import { applyCheckoutDefaults, checkSubscriptionCheckout } from '../../../core/subscriptions/checkout.ts';
import { checkSamePeriod, parseHierarchy } from '../../../core/subscriptions/hierarchy.ts';
import {
  buildLineItem,
  groupOverridesByPrice,
  type LineItemTerms,
  selectPricesToCopy,
  toLineEntity,
} from '../../../core/subscriptions/lines.ts';
import { deriveStartStatus } from '../../../core/subscriptions/moves.ts';
import { refuseUnsupported } from '../../../core/subscriptions/not-yet.ts';
import { resolvePaymentSettings } from '../../../core/subscriptions/payment-settings.ts';
import {
  findRequestedStart,
  isEverActive,
  listExtraLines,
  planParts,
  planPhases,
  toLineFields,
} from '../../../core/subscriptions/phases.ts';
import type { CreateSubscription, SubscriptionStatus } from '../../../core/subscriptions/record.ts';
import {
  commitmentsByPrice,
  ownCommitment,
  withTimeBuckets,
} from '../../../core/subscriptions/requested-commitments.ts';
import { checkThreshold, toStoredThreshold } from '../../../core/subscriptions/terms.ts';
import { applyTrial, checkTrialTerms, planTrial } from '../../../core/subscriptions/trial.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { lockNoClock } from '../../../storage/models/schedule/lock-no-clock.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { taxSubscription } from '../../catalog/taxes/attach-rates.ts';
import { beginGrants } from '../../credits/grants/give-grants.ts';
import { emit } from '../../foundation/emit.ts';
import { type ChangePreview, previewChange } from '../../foundation/preview.ts';
import { addPhases } from '../../subscriptions/add-phases.ts';
import {
  buildChildRequest,
  buildGroupHierarchy,
  createHierarchy,
  type GatheredHierarchy,
  gatherHierarchy,
} from '../../subscriptions/gather-hierarchy.ts';
import { inheritSubscription } from '../../subscriptions/inherited-subscriptions.ts';
import { createCommittedLine, loadPlanLineCommitment } from '../../subscriptions/line-commitments.ts';
import { lockHierarchy } from '../../subscriptions/lock-in-order.ts';
import { checkInheritsNothing } from '../../subscriptions/one-of-a-kind.ts';
import { overrideEntitlements } from '../../subscriptions/override-entitlements.ts';
import { addGrants } from '../../subscriptions/own-grants.ts';
import { redeemRequested } from '../../subscriptions/redeem-requested.ts';
import { checkSharedMeters } from '../../subscriptions/shared-meters.ts';
import { openCheckoutPage, startCheckout } from '../checkout/start-checkout.ts';
import { addSubscriptionCheckout } from '../checkout/subscription-checkout.ts';
import { openAndActivate } from '../invoices/open-and-activate.ts';
import { collectCreation } from '../payments/collect-opening.ts';
import { gatherAttachment, storeAttachment } from './attach-addon.ts';
import { gatherParties, type SubscriptionParties } from './gather-parties.ts';
import { loadExtraPrice, storePartPrice } from './line-prices.ts';
import { toLockedSubscription } from './lock-lines.ts';
import { propagateToChildren } from './propagate-to-children.ts';

export type NewSubscription = {
  subscription: SubscriptionModel;
  line_items: SubscriptionLineItemModel[];
  latest_invoice: InvoiceWithLines | null;
  checkout_session: CheckoutSessionModel | null;
};

export async function createSubscription(
  stores: Stores,
  scope: Scope,
  request: CreateSubscription,
  author: Author,
): Promise<NewSubscription> {
  const make = planCreation(stores, scope, request, author);
  const made = await retryTransaction(stores, make);
  if (made.checkout_session)
    return { ...made, checkout_session: await openCheckoutPage(stores, made.checkout_session, author) };
  return { ...made, ...(await collectCreation(stores, scope, { opened: made, author })) };
}

/** Previews the subscription with its opening invoice, before the invoice is collected. */
export async function previewSubscription<Answer>(
  stores: Stores,
  scope: Scope,
  { request, author, show }: ChangePreview<CreateSubscription, NewSubscription, Answer>,
): Promise<Answer> {
  return previewChange(stores, { change: planCreation(stores, scope, request, author), show });
}

/** Checks the request, and returns the transaction that creates the subscription. */
function planCreation(stores: Stores, scope: Scope, request: CreateSubscription, author: Author) {
  checkTrialTerms(request);
  const hierarchy = parseHierarchy(request);
  checkSubscriptionCheckout(request, hierarchy);
  return async (transaction: Transaction): Promise<NewSubscription> => {
    await lockNoClock(scope, transaction);
    await lockHierarchy(scope, { hierarchy, request }, transaction);
    if (hierarchy.kind === 'inherited') {
      const subscription = await inheritSubscription(scope, { ...hierarchy, request, author }, transaction);
      return { subscription, line_items: [], latest_invoice: null, checkout_session: null };
    }
    const now = author.now.getTime();
    const gatherFamily = (customer: CustomerModel, connected: Database) =>
      gatherHierarchy(scope, { hierarchy, customer, request, now }, connected as Transaction);
    const { family, ...parties } = await gatherParties(scope, { request, gatherFamily }, transaction);
    const terms = decide(request, parties, now);
    return apply(stores, transaction, { scope, request, author, family, ...parties, ...terms });
  };
}

function decide(
  request: CreateSubscription,
  { customer, former, prices, reset_usage }: SubscriptionParties,
  now: number,
) {
  const currency = checkCurrency(request.currency);
  const settings = resolvePaymentSettings(applyCheckoutDefaults(request));
  const billing = {
    currency,
    billing_cycle: request.billing_cycle ?? 'anniversary',
    billing_cadence: 'RECURRING' as const,
    billing_period: request.billing_period,
    billing_period_count: request.billing_period_count ?? 1,
    timezone: request.timezone ?? request.customer_timezone ?? customer.timezone,
    proration_behavior: request.proration_behavior ?? ('none' as const),
  };
  const { end_date, billing_anchor } = request;
  const dates = { ...billing, start_date: findRequestedStart(request), end_date, billing_anchor };
  const calendar = planFirstPeriod(dates, now);
  checkStartAfterFormerHolder(former, calendar.start_date);
  const start = toInstant(calendar.start_date);
  const end = calendar.end_date ? toInstant(calendar.end_date) : null;
  const sold = selectPricesToCopy(prices, currency, { start, end, now });
  const trial = planTrial(request, { start, timezone: billing.timezone, prices: sold });
  const begun = applyTrial(calendar, trial, dates);
  const billed = { ...billing, start_ms: start, end_ms: end, billing_anchor_ms: toInstant(begun.billing_anchor) };
  const copied = planScheduledPrices(sold, { billed, reset_usage, now });
  checkThreshold(request.auto_invoice_threshold, copied);
  refuseUnsupported(request);
  const commitments = commitmentsByPrice(request, copied);
  const overrides = withTimeBuckets(groupOverridesByPrice(request.override_line_items ?? [], copied), commitments);
  const phases = planPhases(request, { start, end }, copied);
  const parts = copied.flatMap((price) => planParts(price, { phases, overrides, billed, reset_usage }));
  return { terms: { ...billing, ...begun, ...settings, ...ownCommitment(request) }, phases, parts, commitments };
}

type Decision = SubscriptionParties &
  ReturnType<typeof decide> & { scope: Scope; request: CreateSubscription; author: Author; family: GatheredHierarchy };

async function apply(stores: Stores, transaction: Transaction, decision: Decision): Promise<NewSubscription> {
  const { request, author } = decision;
  const isDraft = request.subscription_status === 'draft';
  const opened = await addSubscription(decision, isDraft ? 'draft' : deriveStartStatus(decision.terms), transaction);
  const line_items = await addLineItems(decision, opened, transaction);
  await loadAll(transaction, [
    () => checkSharedMeters(transaction, opened, line_items),
    () => addOwn(decision, { subscription: opened, line_items }, transaction),
  ]);
  await createHierarchy(decision.scope, { ...decision, parent: opened }, transaction);
  const children = await addChildren(decision, opened, transaction);
  if (isDraft) {
    await emit(transaction, 'subscription.draft.created', { record: opened, by: author });
    return { subscription: opened, line_items, latest_invoice: null, checkout_session: null };
  }
  const { checkout } = request;
  const session = checkout && (await addSubscriptionCheckout(transaction, opened, { request, checkout, author }));
  const settled = await openAndActivate(stores, transaction, { subscription: opened, line_items, by: author });
  await emit(transaction, 'subscription.created', { record: settled.subscription, by: author });
  await propagateToChildren(stores, transaction, { parent: settled.subscription, by: author });
  await beginGrants(transaction, { subscription: settled.subscription, by: author });
  for (const { id } of children) {
    // The child is read again, because propagation has changed it.
    const child = await SubscriptionModel.fetch(decision.scope, id, { database: transaction });
    await beginGrants(transaction, { subscription: child, by: author });
  }
  if (!session) return { ...settled, line_items, checkout_session: null };
  const checkout_session = await startCheckout(transaction, {
    session,
    invoice: settled.latest_invoice,
    saves_payment_method: settled.subscription.collection_method === 'charge_automatically',
    author,
  });
  return { ...settled, line_items, checkout_session };
}

/** Adds the entitlements, grants, coupons and taxes of the subscription itself, in addition to those of its plan and add-ons. */
async function addOwn(
  { scope, author, request }: Decision,
  { subscription, line_items }: { subscription: SubscriptionModel; line_items: SubscriptionLineItemModel[] },
  database: Transaction,
): Promise<void> {
  const writing = { scope, database, author };
  await overrideEntitlements(subscription, request.override_entitlements ?? [], writing);
  await addGrants(subscription, request.credit_grants ?? [], writing);
  await redeemRequested({ subscription, line_items, request }, { scope, author, transaction: database });
  await taxSubscription(subscription, request.tax_rate_overrides ?? [], { scope, author, transaction: database });
}

/** Adds the children. They are on the opening invoice of their parent, which also opens them. */
async function addChildren(
  decision: Decision,
  parent: SubscriptionModel,
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  const { scope, author } = decision;
  const children: SubscriptionModel[] = [];
  for (const child of decision.family.children) {
    const request = buildChildRequest(child, { request: decision.request, parent });
    const from = toInstant(parent.start_date);
    const gatherFamily = (customer: CustomerModel, connected: Database) =>
      checkInheritsNothing(scope, { customers: [customer], from, field: 'external_customer_id' }, connected);
    const { family: _none, ...parties } = await gatherParties(scope, { request, gatherFamily }, transaction);
    const terms = decide(request, parties, author.now.getTime());
    const made = { scope, request, author, family: buildGroupHierarchy(parent), ...parties, ...terms };
    const record = await addSubscription(made, deriveStartStatus(made.terms), transaction);
    checkSamePeriod(record, parent);
    const line_items = await addLineItems(made, record, transaction);
    await checkSharedMeters(transaction, record, line_items);
    await addOwn(made, { subscription: record, line_items }, transaction);
    await emit(transaction, 'subscription.created', { record, by: author });
    children.push(record);
  }
  return children;
}

function addSubscription(
  decision: Decision,
  status: SubscriptionStatus,
  database: Database,
): Promise<SubscriptionModel> {
  const { scope, request, author, customer, plan, prices, terms, family } = decision;
  const record = {
    ...terms,
    ...family.terms,
    ...createdBy(author),
    id: newId('subscription', author.now.getTime()),
    customer_id: customer.id,
    plan_id: plan.id,
    lookup_key: request.lookup_key,
    subscription_status: status,
    opens_at: status === 'draft' ? null : findOpening(terms, author.now.getTime()),
    gateway_payment_method_id: request.gateway_payment_method_id,
    payment_terms: request.payment_terms,
    auto_invoice_threshold: toStoredThreshold(request.auto_invoice_threshold),
    metadata: request.metadata,
    synced_price_sequence: Math.max(0, ...prices.map((price) => price.sequence)),
    version: 1,
  };
  const conflict = `a subscription with lookup_key ${request.lookup_key} exists already`;
  return SubscriptionModel.add(scope, record, { database, conflict });
}

/** Adds the lines of plan prices in the order of their creation, then extra lines in the order of the request. */
async function addLineItems(
  decision: Decision,
  subscription: SubscriptionModel,
  database: Transaction,
): Promise<SubscriptionLineItemModel[]> {
  const { scope, author, customer, plan, phases, parts, commitments, request } = decision;
  const stored = await addPhases(scope, { phases, subscription_id: subscription.id, author }, database);
  const inPhase = (phase: number | null) => (phase === null ? null : stored[phase]!.id);
  const lines: LineItemTerms[] = [];
  for (const part of parts) {
    const price = await storePartPrice(decision, { part, subscription }, database);
    const entity = { entity_id: plan.id, entity_type: 'plan' as const, name: plan.name };
    const committing = {
      price,
      requested: commitments.get(part.plan_price.id),
      prefix: `line_item_commitments.${part.plan_price.id}.`,
    };
    const committed = await loadPlanLineCommitment(decision, committing, database);
    const choice = {
      ...committed,
      entity,
      quantity: part.override?.quantity ?? null,
      field: part.override?.field,
      requested: toLineFields(part),
    };
    const line = buildPlanLineTerms(decision, subscription, choice);
    if (isEverActive(line)) lines.push({ ...line, subscription_phase_id: inPhase(part.phase) });
  }
  for (const extra of listExtraLines(request, phases)) {
    const { requested, phase, field } = extra;
    const shared = await loadExtraPrice(decision, { ...extra, subscription }, database);
    const committing = { price: shared, requested, subscription, prefix: `${field}.` };
    const committed = await createCommittedLine(decision, committing, database);
    const choice = {
      ...committed,
      entity: toLineEntity(shared, plan),
      quantity: requested.quantity,
      field,
      requested,
    };
    lines.push({ ...buildPlanLineTerms(decision, subscription, choice), subscription_phase_id: inPhase(phase) });
  }
  lines.push(...(await addAddons(decision, subscription, database)));
  checkThreshold(
    request.auto_invoice_threshold,
    lines.map(({ price_type: type }) => ({ type })),
  );
  const records = lines.map((line, position) => ({
    ...line,
    ...createdBy(author),
    id: newId('subscription_line_item', author.now.getTime()),
    position,
    subscription_id: subscription.id,
    customer_id: customer.id,
  }));
  return SubscriptionLineItemModel.addAll(scope, records, { database });
}

/** Attaches the add-ons in the order of the request. An add-on begins with the subscription by default. */
async function addAddons(
  { request, scope, author }: Decision,
  subscription: SubscriptionModel,
  database: Database,
): Promise<LineItemTerms[]> {
  const writing = { scope, database, author };
  const locked = toLockedSubscription(subscription, author);
  const lines: LineItemTerms[] = [];
  for (const [index, requested] of (request.addons ?? []).entries()) {
    try {
      const attachment = await gatherAttachment(
        locked,
        { ...requested, start_date: requested.start_date ?? subscription.start_date },
        writing,
      );
      await storeAttachment(attachment, writing);
      lines.push(...attachment.lines.map(({ terms }) => terms));
    } catch (error) {
      throw prefixField(error, `addons[${index}]`);
    }
  }
  return lines;
}

type LineChoice = Pick<
  Parameters<typeof buildLineItem>[0],
  'price' | 'entity' | 'quantity' | 'field' | 'requested' | 'commitment'
>;

function buildPlanLineTerms(
  { author, meters }: Decision,
  subscription: SubscriptionModel,
  choice: LineChoice,
): LineItemTerms {
  const meter_name = choice.price.meter_id ? (meters.get(choice.price.meter_id)?.name ?? null) : null;
  return buildLineItem({ ...choice, subscription, meter_name, now: author.now.getTime() });
}
