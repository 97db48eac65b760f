/**
 * Webhooks of Zoho Books, which workflow rules of the organization send (zoho.com/books/help/settings/automation, "Webhooks";
 * zoho.com/billing/kb/webhooks/securing-webhooks.html). `X-Zoho-Webhook-Signature` is the hexadecimal HMAC-SHA256 of the
 * parameters sorted by name, each as its name and value, and then a body of JSON. It covers no time, so an old delivery
 * can be replayed; a replay has the id of the first delivery.
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type { InboundEvent } from '../account.ts';
import { parseExactJson } from '../exact-json.ts';
import type { InboundWebhook } from '../provider.ts';
import { buildSignatureRefusal, parseJsonBody } from '../webhook-parts.ts';

export const FORM = 'application/x-www-form-urlencoded';

/** The name distinguishes deliveries of one record in one state, such as its creation and its deletion. */
export const zohoWebhookQuery = z.object({
  event: z
    .string()
    .regex(/^\w{1,64}\.\w{1,64}$/, 'must be a record and what happened, such as invoice.edited')
    .optional()
    .meta({ description: 'Name of the event, which you choose, such as `payment.deleted`.' }),
});

type ZohoDelivery = Pick<InboundWebhook, 'headers' | 'body' | 'url'>;

/** Every refusal has one message, so that a forger learns nothing from it. */
export function checkZohoSignature({
  secrets,
  ...webhook
}: ZohoDelivery & { readonly secrets: readonly string[] }): void {
  const signature = (webhook.headers['x-zoho-webhook-signature'] ?? '').toLowerCase();
  const given = Buffer.from(/^[0-9a-f]{64}$/.test(signature) ? signature : '0'.repeat(64), 'hex');
  const texts = listSignedTexts(webhook);
  const expected = secrets.flatMap((secret) => texts.map((text) => createHmac('sha256', secret).update(text).digest()));
  const matching = expected.filter((one) => timingSafeEqual(given, one));
  if (matching.length === 0) throw buildSignatureRefusal();
}

/**
 * Lists the bytes that the signature may cover. The fields of a form are parameters; a form that is signed as its bytes is
 * accepted too, because Zoho documents this case by a single example.
 */
function listSignedTexts({ headers, body, url }: ZohoDelivery): readonly Buffer[] {
  const query = readQuery(url);
  const raw = Buffer.concat([joinSorted(query), body]);
  const form = isForm(headers) ? readForm(body) : null;
  return form === null ? [raw] : [joinSorted([...query, ...form]), raw];
}

function joinSorted(parameters: readonly (readonly [string, string])[]): Buffer {
  const sorted = [...parameters].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
  return Buffer.from(sorted.map(([name, value]) => name + value).join(''));
}

function readQuery(url = ''): [string, string][] {
  const start = url.indexOf('?');
  return start === -1 ? [] : [...new URLSearchParams(url.slice(start + 1))];
}

/** Maximum number of fields of a form. Anybody may send one, and sorting the fields of a megabyte takes most of a second. */
const FIELDS_MAX = 1_000;

/** Null if the form has too many fields. */
function readForm(body: Uint8Array): [string, string][] | null {
  const text = Buffer.from(body).toString('utf8');
  const isLong = text.split('&', FIELDS_MAX + 1).length > FIELDS_MAX;
  return isLong ? null : [...new URLSearchParams(text)];
}

function isForm(headers: InboundWebhook['headers']): boolean {
  return (headers['content-type'] ?? '').toLowerCase().startsWith(FORM);
}

/**
 * Parses a webhook: the record in the default payload, or its ids in a payload of the user's own. The account is read
 * afterwards, so the payload only names what changed.
 */
export function parseZohoWebhook({ headers, body, url }: ZohoDelivery): InboundEvent[] {
  const content = isForm(headers) ? parseForm(body) : parseObject(body);
  const event = new Map(readQuery(url)).get('event');
  const [name] = Object.entries(content).find(([, value]) => isObject(value)) ?? ['record'];
  const digest = createHash('sha256')
    .update(`${event ?? ''}\n`)
    .update(body);
  return [
    {
      provider_event_id: `sha256:${digest.digest('hex')}`,
      event_type: event ?? `${name}.changed`.slice(-128),
      provider_account_id: null,
      occurred_at: readTime(content),
      subjects: listSubjects(content),
    },
  ];
}

/** In a form, the default payload is the field `JSONString`. */
function parseForm(body: Uint8Array): Readonly<Record<string, unknown>> {
  const form = readForm(body);
  if (form === null) throw invalid('body', `has more than ${FIELDS_MAX} fields`);
  const { JSONString, ...fields } = Object.fromEntries(form);
  return JSONString === undefined ? fields : { ...fields, ...parseObject(Buffer.from(JSONString)) };
}

function parseObject(body: Uint8Array): Readonly<Record<string, unknown>> {
  const parsed = parseJsonBody(body, parseExactJson);
  if (!isObject(parsed)) throw invalid('body', 'is no JSON object');
  return parsed;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names under which the default payload has a record that is read. */
const RECORD_NAMES = ['invoice', 'payment', 'customer_payment', 'customerpayment', 'creditnote', 'credit_note'];
const ID = /^\d{1,25}$/;

/** Lists the invoices and payments that the content names. A credit note names its invoices. */
function listSubjects(content: Readonly<Record<string, unknown>>): ProviderEventSubject[] {
  const records = listRecords(content);
  const listed = records.flatMap(({ invoices }) => (Array.isArray(invoices) ? invoices.filter(isObject) : []));
  const toSubjects = (kind: 'invoice' | 'payment', found: readonly Readonly<Record<string, unknown>>[]) =>
    [...new Set(found.map((record) => record[`${kind}_id`]))].flatMap((id) =>
      typeof id === 'string' && ID.test(id) ? [{ kind, provider_entity_id: id }] : [],
    );
  return [...toSubjects('payment', records), ...toSubjects('invoice', [...records, ...listed])];
}

function listRecords(content: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  return [content, ...RECORD_NAMES.map((name) => content[name]).filter(isObject)];
}

function readTime(content: Readonly<Record<string, unknown>>): string | null {
  const [time] = listRecords(content).flatMap(({ last_modified_time: text }) => (typeof text === 'string' ? text : []));
  const ms = Date.parse(time ?? '');
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
