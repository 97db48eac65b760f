/**
 * Derives the change that an update requests in addition to the fields that change in place (docs/rules/subscriptions.md, "Changes in
 * place"). Only values that differ from the record request a change, so sending a record back changes nothing. A request may make one
 * change.
 */
import { invalid, notAllowed } from '../foundation/error.ts';
import { toInstant } from '../foundation/time/instant.ts';
import type { Subscription, UpdateSubscription } from './record.ts';

export type RequestedVerb =
  | {
      readonly verb: 'cancel';
      readonly cancellation_type: 'end_of_period' | 'scheduled_date';
      readonly cancel_at: string | null;
    }
  /** Withdraws the scheduled cancellation. */
  | { readonly verb: 'resume' }
  /** Invoices the subscription with a parent from now on. */
  | { readonly verb: 'join'; readonly parent_subscription_id: string };

const IN_PLACE = ['metadata', 'lookup_key', 'auto_invoice_threshold'] as const;

type SubscriptionBeforeUpdate = Pick<
  Subscription,
  'subscription_status' | 'cancel_at' | 'cancel_at_period_end' | 'parent_subscription_id' | (typeof IN_PLACE)[number]
>;

/** Finds the change that the request asks for in addition to fields that change in place; null if it asks for none. */
export function findRequestedVerb(request: UpdateSubscription, before: SubscriptionBeforeUpdate): RequestedVerb | null {
  checkStatus(request, before);
  const verbs = [findRequestedCancellation(request, before), findRequestedParent(request, before)].filter(
    (verb) => verb !== null,
  );
  const [verb] = verbs;
  if (verb === undefined) return null;
  const other = IN_PLACE.find(
    (field) => request[field] !== undefined && toComparableText(request[field]) !== toComparableText(before[field]),
  );
  if (verbs.length > 1)
    throw invalid('parent_subscription_id', 'does not go with a cancellation: one change at a time');
  if (other) throw invalid(other, `does not go with a change of ${FIELD[verb.verb]}: send one after the other`);
  return verb;
}

/** Equal values have equal texts; an empty value has the empty text. */
function toComparableText(value: Subscription[(typeof IN_PLACE)[number]]): string {
  if (value === null || value === undefined || value === '' || value === '0') return '';
  return typeof value === 'string' ? value : JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const FIELD = { cancel: 'cancel_at', resume: 'cancel_at_period_end', join: 'parent_subscription_id' } as const;

function checkStatus({ status, subscription_status }: UpdateSubscription, before: SubscriptionBeforeUpdate): void {
  for (const requested of [status, subscription_status]) {
    if (requested === null || requested === before.subscription_status || requested === 'published') continue;
    throw notAllowed('status: a subscription is activated by POST …/activate and ended by POST …/cancel', {
      field: 'status',
    });
  }
}

function findRequestedCancellation(
  request: UpdateSubscription,
  before: SubscriptionBeforeUpdate,
): RequestedVerb | null {
  const { cancel_at, cancel_at_period_end } = request;
  const isNewDate = cancel_at !== null && !isSameInstantText(cancel_at, before.cancel_at);
  const isNewFlag = cancel_at_period_end !== null && cancel_at_period_end !== before.cancel_at_period_end;
  if (isNewFlag && !cancel_at_period_end) {
    if (isNewDate)
      throw invalid('cancel_at', 'does not go with cancel_at_period_end false: undo the one, then set the other');
    return { verb: 'resume' };
  }
  if (isNewFlag && isNewDate) throw invalid('cancel_at', 'does not go with cancel_at_period_end');
  if (isNewFlag) return { verb: 'cancel', cancellation_type: 'end_of_period', cancel_at: null };
  return isNewDate ? { verb: 'cancel', cancellation_type: 'scheduled_date', cancel_at } : null;
}

function isSameInstantText(requested: string, stored: string | null | undefined): boolean {
  return Boolean(stored) && toInstant(requested) === toInstant(stored!);
}

function findRequestedParent(
  { parent_subscription_id: parent }: UpdateSubscription,
  before: SubscriptionBeforeUpdate,
): RequestedVerb | null {
  if (parent === null || parent === before.parent_subscription_id) return null;
  return { verb: 'join', parent_subscription_id: parent };
}
