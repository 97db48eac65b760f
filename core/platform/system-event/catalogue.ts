/**
 * Registry of system events, each with its kind of record and the condition of emission (docs/rules/webhooks.md, "Which events there are").
 * A new operation adds its line here and calls `emit` with the change. Names and validators come from this list.
 */

/** A system event. `body_key` is the key of the record in the body, if it is not the entity type. */
type CatalogueEntry = { readonly entity_type: string; readonly emitted_when: string; readonly body_key?: string };
const defineEntries =
  (entity_type: string) =>
  (condition: string): CatalogueEntry => ({ entity_type, emitted_when: condition });

const customer = defineEntries('customer');
const feature = defineEntries('feature');
const entitlement = defineEntries('entitlement');
const subscription = defineEntries('subscription');
const phase = defineEntries('phase');
const invoice = defineEntries('invoice');
const payment = defineEntries('payment');
const checkoutSession = defineEntries('checkout_session');
const creditNote = defineEntries('credit_note');
const wallet = defineEntries('wallet');
const endpoint = defineEntries('webhook_endpoint');
const reservation = defineEntries('reservation');
const connection = defineEntries('connection');
const integrationMapping = defineEntries('integration_mapping');
const eventRejection = defineEntries('event_rejection');

export const SYSTEM_EVENTS = {
  'event.rejected': {
    ...eventRejection('Usage events are not counted; at most once a minute for each reason.'),
    body_key: 'rejection',
  },
  'customer.created': customer('A customer is created.'),
  'customer.updated': customer('A customer is changed.'),
  'customer.deleted': customer('A customer is archived.'),
  'feature.created': feature('A feature is created or copied.'),
  'feature.updated': feature('A feature is changed.'),
  'feature.deleted': feature('A feature is archived.'),
  'feature.wallet_balance.alert': feature(
    'What is left of a wallet in real time has reached another level of a feature that its customer pays for, or none any more.',
  ),
  'entitlement.created': entitlement('An entitlement is created.'),
  'entitlement.updated': entitlement('An entitlement is changed.'),
  'entitlement.deleted': entitlement('An entitlement is archived.'),
  'entitlement.grant.exhausted': entitlement('Nothing is left of a grant that usage has begun.'),
  'entitlement.grant.threshold_reached': entitlement(
    'What has been used of a grant has reached another level of its entitlement.',
  ),
  'entitlement.grant.threshold_recovered': entitlement(
    'What has been used of a grant that lasts is below every level of its entitlement again.',
  ),
  'subscription.draft.created': subscription('A subscription is created as a draft.'),
  'subscription.created': subscription('A subscription is created that is no draft.'),
  'subscription.activated': subscription('A draft or an incomplete subscription becomes active, or a trial ends.'),
  'subscription.updated': subscription(
    'A subscription is changed, moves on to its next period, or is to be cancelled.',
  ),
  'subscription.plan_changed': subscription('A subscription has another plan, at once or at the end of a period.'),
  'subscription.plan_change.failed': subscription(
    'A plan change at the end of a period has become impossible, or has failed too often; `error` says why.',
  ),
  'subscription.cancelled': subscription('A subscription ends: at once, on a date or at the end of its period.'),
  'subscription.spend.threshold_reached': subscription(
    'What a subscription costs has reached another level of its alert.',
  ),
  'subscription.spend.threshold_recovered': subscription(
    'What a subscription costs is below every level of its alert again.',
  ),
  'subscription.line_item_spend.threshold_reached': subscription(
    'What a line item costs has reached another level of its alert.',
  ),
  'subscription.line_item_spend.threshold_recovered': subscription(
    'What a line item costs is below every level of its alert again.',
  ),
  'subscription.group_spend.threshold_reached': subscription(
    'What the lines of a group cost has reached another level of its alert.',
  ),
  'subscription.group_spend.threshold_recovered': subscription(
    'What the lines of a group cost is below every level of its alert again.',
  ),
  'subscription.phase.created': phase('A subscription is created that has this phase; once for each.'),
  'invoice.drafted': invoice('A draft is made, once for each invoice.'),
  'invoice.update': invoice('An invoice is changed by hand, or computed anew.'),
  'invoice.finalized': invoice('An invoice becomes final; its lines and its customer are in the body.'),
  'invoice.update.payment': invoice('The payment status of an invoice is changed.'),
  'invoice.update.voided': invoice('An invoice is voided.'),
  'invoice.payment.overdue': invoice('The due date of an invoice has passed, and something remains to be paid; once.'),
  'payment.created': payment('A payment is made, by a request or because an invoice became final.'),
  'payment.updated': payment(
    'A payment is changed by hand, voided, or refunded, a refund of it has failed, or its void page cannot be closed.',
  ),
  'payment.pending': payment('A provider is asked for the money, or the customer has to act.'),
  'payment.success': payment('The money of a payment was received.'),
  'payment.disputed': payment(
    'The provider reports that the customer disputes a payment, or that the dispute has changed; `dispute` names it.',
  ),
  'payment.failed': payment('A try failed; `payment_status` FAILED says that it is not tried again.'),
  'checkout.session.initiated': checkoutSession('The page of a checkout is open; `payment_action` has its URL.'),
  'checkout.session.completed': checkoutSession('The invoice of a checkout is paid, or there is nothing to pay.'),
  'checkout.session.failed': checkoutSession(
    'The page of a checkout was closed without a payment; `failure_reason` has the reason.',
  ),
  'checkout.session.expired': checkoutSession('A checkout was not paid within a day, or was closed by a request.'),
  'invoice.communication.triggered': invoice(
    'Somebody asks for an invoice to be sent; its lines and its customer are in the body.',
  ),
  'credit_note.created': creditNote('A credit note is created.'),
  'credit_note.updated': creditNote('A credit note becomes final, or is voided.'),
  'wallet.created': wallet('A wallet is made, by a request or because something is credited.'),
  'wallet.updated': wallet('The settings of a wallet are changed.'),
  'wallet.terminated': wallet('A wallet is closed, or has become a postpaid one.'),
  'wallet.credit_balance.dropped': wallet('The credits of a wallet have reached another level of its alert.'),
  'wallet.credit_balance.recovered': wallet('The credits of a wallet are above every level of its alert again.'),
  'wallet.ongoing_balance.dropped': wallet(
    'What is left of a wallet in real time has reached another level of its alert.',
  ),
  'wallet.ongoing_balance.recovered': wallet(
    'What is left of a wallet in real time is above every level of its alert again.',
  ),
  'wallet.transaction.created': {
    ...wallet('Credits are put in or taken out, or are to come once their invoice is paid.'),
    body_key: 'transaction',
  },
  'wallet.transaction.updated': {
    ...wallet('Credits that were to come have come, or will not.'),
    body_key: 'updated_transaction',
  },
  'reservation.charge_failed': reservation(
    'A reservation has expired that was to be charged then, and could not be; `error` says why.',
  ),
  'connection.needs_attention': connection(
    'The provider of a connection refuses its credentials or requests; it is not called until somebody acts.',
  ),
  'integration_mapping.failed': integrationMapping(
    'A provider refuses a record; `push_error` says why. It is sent again on request.',
  ),
  'integration_mapping.needs_attention': integrationMapping(
    'The counterpart of a record differs in a way that a person has to resolve; `attention_reason` describes it.',
  ),
  'webhook_endpoint.disabled': endpoint('An endpoint has failed for days and is switched off.'),
  'webhook_endpoint.test': endpoint('Somebody asks for a test; told to the endpoint itself, whatever its filter.'),
} as const satisfies Record<string, CatalogueEntry>;

export type SystemEventName = keyof typeof SYSTEM_EVENTS;
export const SYSTEM_EVENT_NAMES = Object.keys(SYSTEM_EVENTS) as [SystemEventName, ...SystemEventName[]];
export type SystemEntityType = (typeof SYSTEM_EVENTS)[SystemEventName]['entity_type'];

/** Alternative names that filters accept. Emitted events have our names. */
const ALIASES: Readonly<Record<string, SystemEventName>> = {
  'invoice.create.drafted': 'invoice.drafted',
  'invoice.update.finalized': 'invoice.finalized',
};

/** Canonical name of an event, case-insensitive; an unknown name is returned unchanged. */
export function parseEventName(input: string): string {
  const name = input.trim().toLowerCase();
  return ALIASES[name] ?? (Object.hasOwn(SYSTEM_EVENTS, name) ? name : input);
}
