/**
 * The body of a webhook: the name and the id of the event, its moment, and under the name of its kind the record as the
 * interface answers it (docs/rules/webhooks.md, "The body"). Its keys and their order are a contract, which golden files hold
 * (test/golden/webhooks): what is added is added at the end of a record.
 */
import { z } from 'zod';
import { CreditNote } from '../credit-note/record.ts';
import { customerShape } from '../customer/record.ts';
import { publishedEntitlementShape } from '../entitlement/record.ts';
import { featureShape } from '../feature/record.ts';
import { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { completeKeys } from '../json/complete-keys.ts';
import { Payment } from '../payment/record.ts';
import { timestampText } from '../record.ts';
import { reservationShape } from '../reservation/record.ts';
import { SubscriptionPhase } from '../subscription/phases.ts';
import { Subscription } from '../subscription/record.ts';
import { Wallet, WalletTransaction } from '../wallet/record.ts';
import { webhookEndpointShape } from '../webhook/record.ts';
import { SYSTEM_EVENTS, type SystemEntityType, type SystemEventName } from './catalogue.ts';

/** What a record of each kind shows; a kind without a shape here shows all that it has. */
const SHAPES: Partial<Record<SystemEntityType, z.ZodType>> = {
  customer: customerShape,
  // Their numbers are for those who set them, and have another form on the wire.
  feature: featureShape.omit({ reporting_unit: true, alert_settings: true }),
  entitlement: publishedEntitlementShape,
  subscription: Subscription,
  phase: SubscriptionPhase,
  invoice: Invoice.extend({ line_items: InvoiceLineItem.array().nullish(), customer: customerShape.nullish() }),
  payment: Payment,
  credit_note: CreditNote,
  webhook_endpoint: webhookEndpointShape,
  wallet: Wallet,
  reservation: reservationShape,
};
/** Where a record stands under another name it is another thing. */
const SHAPES_BY_KEY: Readonly<Record<string, z.ZodType>> = {
  transaction: WalletTransaction,
  updated_transaction: WalletTransaction,
};

const Head = z.object({ event_type: z.string(), id: z.string(), created_at: timestampText, api_version: z.string() });

/** The version of the interface of which the body is a part. */
const API_VERSION = 'v1';

type BodyEvent = { readonly entity_type: SystemEntityType; readonly body_key?: string };

export type EventBodyInput = {
  readonly id: string;
  readonly name: SystemEventName;
  readonly record: object;
  /** What stands beside the record: of an alert its state and what it was compared with. */
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
