/**
 * Body of a webhook: name, id and time of the event, and the record as the API returns it, under the name of its kind
 * (docs/rules/webhooks.md, "The body"). Its keys and their order are a contract, fixed by golden files (test/golden/webhooks). New keys are
 * added at the end of a record.
 */
import { z } from 'zod';
import { customerShape } from '../../catalog/customer/record.ts';
import { publishedEntitlementShape } from '../../catalog/entitlement/record.ts';
import { featureShape } from '../../catalog/feature/record.ts';
import { reservationShape } from '../../credits/reservations/record.ts';
import { Wallet, WalletTransaction } from '../../credits/wallet/record.ts';
import { completeKeys } from '../../foundation/json/complete-keys.ts';
import { timestampText } from '../../foundation/record.ts';
import { CreditNote } from '../../invoicing/credit-note/record.ts';
import { Invoice, InvoiceLineItem } from '../../invoicing/invoice/record.ts';
import { eventRejectionShape } from '../../metering/event/uncounted.ts';
import { CheckoutSessionEvent } from '../../payments/checkout/record.ts';
import { Payment } from '../../payments/record.ts';
import { SubscriptionPhase } from '../../subscriptions/phases.ts';
import { Subscription } from '../../subscriptions/record.ts';
import { connectionShape } from '../connection/record.ts';
import { integrationMappingShape } from '../integration/mapping.ts';
import { webhookEndpointShape } from '../webhook/record.ts';
import { SYSTEM_EVENTS, type SystemEntityType, type SystemEventName } from './catalogue.ts';

/** Shape of the records of each kind. A kind without a shape shows all fields. */
const SHAPES: Partial<Record<SystemEntityType, z.ZodType>> = {
  customer: customerShape,
  // Omitted, because these settings are meant for the author of the feature, and their stored form differs from that in the API.
  feature: featureShape.omit({ reporting_unit: true, alert_settings: true }),
  entitlement: publishedEntitlementShape,
  subscription: Subscription,
  phase: SubscriptionPhase,
  invoice: Invoice.extend({ line_items: InvoiceLineItem.array().nullish(), customer: customerShape.nullish() }),
  payment: Payment,
  checkout_session: CheckoutSessionEvent,
  credit_note: CreditNote,
  webhook_endpoint: webhookEndpointShape,
  wallet: Wallet,
  reservation: reservationShape,
  connection: connectionShape,
  integration_mapping: integrationMappingShape,
  event_rejection: eventRejectionShape,
};
/** Shapes by body key, for keys that contain another kind of record. */
const SHAPES_BY_KEY: Readonly<Record<string, z.ZodType>> = {
  transaction: WalletTransaction,
  updated_transaction: WalletTransaction,
};

const Head = z.object({ event_type: z.string(), id: z.string(), created_at: timestampText, api_version: z.string() });

/** API version of the body. */
const API_VERSION = 'v1';

type BodyEvent = { readonly entity_type: SystemEntityType; readonly body_key?: string };

type EventBodyInput = {
  readonly id: string;
  readonly name: SystemEventName;
  readonly record: object;
  /** Further keys of the body, for example the state of an alert and the compared value. */
  readonly also?: Readonly<Record<string, unknown>> | undefined;
  readonly now: Date;
};

export function buildEventBody({ id, name, record, also, now }: EventBodyInput): Record<string, unknown> {
  const { entity_type, body_key = entity_type }: BodyEvent = SYSTEM_EVENTS[name];
  const shape = SHAPES_BY_KEY[body_key] ?? SHAPES[entity_type];
  const shown = shape === undefined ? JSON.parse(JSON.stringify(record)) : completeKeys(shape, record);
  const head = completeKeys(Head, { event_type: name, id, created_at: now.toISOString(), api_version: API_VERSION });
  return { ...(head as object), [body_key]: shown, ...also };
}
