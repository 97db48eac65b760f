/**
 * Grants credits to a subscription from its plan, its add-ons and itself: creates the first application of each grant, and applies all due
 * ones, including missed ones (docs/rules/credits.md, "Applications"). The transaction has locked the subscription's row.
 */
import {
  type AppliedGrant,
  type CreditGrantApplication,
  deferApplication,
  deriveApplicationOutcome,
  planFirstApplication,
  planNextApplication,
} from '../../../core/credits/grants/application.ts';
import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { toMoney } from '../../../core/rating/wallet/rates.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { CreditGrantApplicationModel } from '../../../storage/models/credits/credit-grant-application.ts';
import { listReachingGrants } from '../../../storage/models/credits/reaching-grants.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { lockDueGrant } from '../../../storage/queue/due-grants.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { toScope } from '../../rating/billable-items.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { creditWallet } from '../wallets/credit-wallet.ts';

type SubscriptionGrant = Omit<AppliedGrant, 'subscription' | 'association' | 'grant'> & {
  readonly subscription: SubscriptionModel;
  readonly grant: CreditGrantModel;
  readonly association: AddonAssociationModel | null;
};
type GrantStart = { readonly given: SubscriptionGrant; readonly from: Milliseconds };

/** Maximum number of missed applications that one call applies to a subscription; the scheduler applies the rest. */
const CAUGHT_UP_MAX = 100;

/** Starts all grants of a subscription that begins. Drafts have none yet. */
export async function beginGrants(
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: ChangeAuthor },
): Promise<void> {
  const { id, plan_id, start_date } = subscription;
  const scope = toScope(subscription);
  const grants = await listReachingGrants(scope, { subscription_ids: [id], plan_ids: [plan_id] }, transaction);
  if (grants.length === 0) return;
  const addons = grants.flatMap(({ addon_id }) => addon_id ?? []);
  const associations =
    addons.length === 0
      ? []
      : await AddonAssociationModel.notEnded(scope, by.now, transaction)
          .where('entity_id', id)
          .whereIn('addon_id', addons);
  const beginnings = grants.flatMap((grant): GrantStart[] => {
    if (grant.addon_id !== null)
      return associations
        .filter(({ addon_id }) => addon_id === grant.addon_id)
        .map(toAddonGrantStart(subscription, grant));
    // An inherited subscription has no plan of its own.
    if (grant.scope === 'PLAN' && subscription.subscription_type === 'INHERITED') return [];
    return [{ given: { grant, subscription, association: null }, from: toInstant(grant.start_date ?? start_date) }];
  });
  await startGrants(transaction, subscription, { beginnings, by });
}

function toAddonGrantStart(subscription: SubscriptionModel, grant: CreditGrantModel) {
  return (association: AddonAssociationModel): GrantStart => ({
    given: { grant, subscription, association },
    from: Math.max(toInstant(association.start_date), toInstant(subscription.start_date)),
  });
}

/** Starts the grants of an add-on that is attached to a begun subscription. */
export async function beginAddonGrants(
  transaction: Transaction,
  {
    subscription,
    association,
    by,
  }: { subscription: SubscriptionModel; association: AddonAssociationModel; by: ChangeAuthor },
): Promise<void> {
  const giver = ['addon_id', [association.addon_id]] as const;
  const grants = await CreditGrantModel.buildPublishedQuery(toScope(subscription), [...giver], transaction);
  const beginnings = grants.map((grant) => toAddonGrantStart(subscription, grant)(association));
  await startGrants(transaction, subscription, { beginnings, by });
}

/** Starts the grants of a new plan at the change. Credits of the old plan remain. */
export async function beginPlanGrants(
  transaction: Transaction,
  { subscription, at, by }: { subscription: SubscriptionModel; at: Milliseconds; by: ChangeAuthor },
): Promise<void> {
  const giver = ['plan_id', [subscription.plan_id]] as const;
  const grants = await CreditGrantModel.buildPublishedQuery(toScope(subscription), [...giver], transaction);
  const beginnings = grants.map((grant) => ({ given: { grant, subscription, association: null }, from: at }));
  await startGrants(transaction, subscription, { beginnings, by });
}

/**
 * Starts a grant of the subscription itself at the `start_date` of the grant. If it has applications already, as after a change of its end,
 * continues it after the last one.
 */
export async function continueGrant(
  transaction: Transaction,
  { subscription, grant, by }: { subscription: SubscriptionModel; grant: CreditGrantModel; by: ChangeAuthor },
): Promise<void> {
  if (subscription.subscription_status === 'draft') return;
  const given: SubscriptionGrant = { grant, subscription, association: null };
  const chain = { credit_grant_id: grant.id, subscription_id: subscription.id };
  const [last] = await CreditGrantApplicationModel.in(grant, transaction)
    .where(chain)
    .whereIn('application_status', ['applied', 'skipped'])
    .orderBy('period_start', 'desc')
    .limit(1);
  const planned = last ? planNextApplication(given, last) : planFirstApplication(given, toInstant(grant.start_date!));
  if (planned) await createApplications(transaction, subscription, { applications: [planned], by });
  await applyDueGrants(transaction, { subscription, by });
}

async function startGrants(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { beginnings, by }: { beginnings: readonly GrantStart[]; by: ChangeAuthor },
): Promise<void> {
  if (beginnings.length === 0 || subscription.subscription_status === 'draft') return;
  const applications = beginnings.map(({ given, from }) => planFirstApplication(given, from));
  await createApplications(transaction, subscription, { applications, by });
  await resumeGrants(transaction, subscription, { beginnings, applications, by });
  await applyDueGrants(transaction, { subscription, by });
}

type PlannedGrantApplication = ReturnType<typeof planFirstApplication>;
type StartedGrants = {
  readonly beginnings: readonly GrantStart[];
  readonly applications: readonly PlannedGrantApplication[];
  readonly by: ChangeAuthor;
};

/**
 * Plans the next application of grants whose first application exists already: the subscription ended and began again
 * at the same instant.
 */
async function resumeGrants(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { beginnings, applications, by }: StartedGrants,
): Promise<void> {
  const keys = applications.map(({ idempotency_key }) => idempotency_key);
  const given = await CreditGrantApplicationModel.in(subscription, transaction)
    .whereIn('idempotency_key', keys)
    .whereIn('application_status', ['applied', 'skipped']);
  const next = given.flatMap((one) => {
    const beginning = beginnings[keys.indexOf(one.idempotency_key)]!;
    return planNextApplication(beginning.given, one) ?? [];
  });
  if (next.length > 0) await createApplications(transaction, subscription, { applications: next, by });
}

async function createApplications(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { applications, by }: { applications: readonly PlannedGrantApplication[]; by: ChangeAuthor },
): Promise<void> {
  const records = applications.map((application) => ({
    ...application,
    ...createdBy({ user_id: 'user_id' in by ? by.user_id : '', now: by.now }),
    id: newId('credit_grant_application', by.now.getTime()),
  }));
  await CreditGrantApplicationModel.plan(toScope(subscription), records, { by, transaction });
}

/** Returns the number of processed applications. */
export async function applyDueGrants(
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: ChangeAuthor },
): Promise<number> {
  for (let count = 0; count < CAUGHT_UP_MAX; count++) {
    const dueQuery = { subscription_id: subscription.id, now: by.now };
    const due = await lockDueGrant(transaction, toScope(subscription), dueQuery);
    if (!due) return count;
    await applyGrantApplication(transaction, { application: due, subscription, by });
  }
  return CAUGHT_UP_MAX;
}

type GrantApplicationInput = {
  readonly application: CreditGrantApplicationModel;
  readonly subscription: SubscriptionModel;
  readonly by: ChangeAuthor;
};

async function applyGrantApplication(
  transaction: Transaction,
  { application, subscription, by }: GrantApplicationInput,
): Promise<void> {
  const given = await loadGrant(transaction, application, subscription);
  const now = by.now.getTime();
  const status = subscription.subscription_status;
  const outcome = deriveApplicationOutcome(given, application, { status, now });
  const write = (changes: Partial<CreditGrantApplication>) => {
    const seen = { ...changes, subscription_status_at_application: status };
    return CreditGrantApplicationModel.change(application, seen, { by, database: transaction });
  };
  if (outcome.action === 'defer')
    return void (await write({
      application_status: 'pending',
      failure_reason: outcome.why,
      ...deferApplication(application, now),
    }));
  if (outcome.action === 'cancel')
    return void (await write({ application_status: 'cancelled', failure_reason: outcome.why }));
  if (outcome.action === 'skip') await write({ application_status: 'skipped', failure_reason: outcome.why });
  else {
    await creditGrant(transaction, { given, application, expires_at: outcome.expires_at, by });
    await write({ application_status: 'applied', applied_at: formatMs(now), failure_reason: null });
  }
  const next = planNextApplication(given, application);
  if (next) await createApplications(transaction, subscription, { applications: [next], by });
}

async function loadGrant(
  transaction: Transaction,
  { credit_grant_id, addon_association_id }: CreditGrantApplicationModel,
  subscription: SubscriptionModel,
): Promise<SubscriptionGrant> {
  const scope = toScope(subscription);
  const grant = await CreditGrantModel.fetch(scope, credit_grant_id, { database: transaction });
  const association = addon_association_id
    ? await AddonAssociationModel.fetch(scope, addon_association_id, { database: transaction })
    : null;
  return { grant, subscription, association };
}

type GrantCredit = {
  readonly given: SubscriptionGrant;
  readonly application: CreditGrantApplicationModel;
  readonly expires_at: Milliseconds | null;
  readonly by: ChangeAuthor;
};

/** Credits the prepaid wallet of the subscription's payer, at the grant's rate. */
async function creditGrant(
  transaction: Transaction,
  { given: { grant, subscription }, application, expires_at, by }: GrantCredit,
): Promise<void> {
  const conversion_rate = grant.conversion_rate ?? '1';
  const scope = toScope(subscription);
  const purse = { customer_id: await loadPayer(subscription, transaction), currency: subscription.currency };
  const wallet = await WalletModel.lockPrepaidWallet(scope, purse, transaction);
  const credits = new Decimal(application.credits);
  // A wallet with another rate gets credits of the same value.
  const isAlike = !wallet || new Decimal(wallet.conversion_rate).eq(conversion_rate);
  await creditWallet(transaction, scope, {
    ...purse,
    ...(isAlike ? { credits } : { amount: toMoney(credits, conversion_rate) }),
    transaction_reason: 'SUBSCRIPTION_CREDIT_GRANT',
    reference_type: 'EXTERNAL',
    reference_id: application.id,
    idempotency_key: toOwnKey('grant', application.idempotency_key),
    description: grant.name,
    metadata: { credit_grant_id: grant.id, subscription_id: subscription.id },
    priority: grant.priority,
    expiry_date: expires_at === null ? null : formatMs(expires_at),
    // Granted credits pay for usage.
    wallet: {
      conversion_rate,
      topup_conversion_rate: grant.topup_conversion_rate ?? conversion_rate,
      config: { allowed_price_types: ['USAGE'] },
    },
    author: 'user_id' in by ? by : { user_id: '', now: by.now },
  });
}
