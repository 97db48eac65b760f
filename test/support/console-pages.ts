/** The pages of the console with the records of `seedRecords`, also their open sheets and dialogues. */
import type { SeededRecords } from './console-records.ts';

/** Paths below the environment. */
export function listPages(records: SeededRecords): string[] {
  const {
    meter_id,
    plan_id,
    price_id,
    customer_id,
    subscription_id,
    wallet_id,
    invoice_id,
    line_id,
    draft_id,
    endpoint_id,
    event_id,
    uncounted_id,
  } = records;
  const invoice = `/invoices/${invoice_id}`;
  const plan = `/plans/${plan_id}`;
  const price = `${plan}/prices/${price_id}`;
  return [
    '/',
    ...withSearches('/first-bill', ['', 'step=sell', 'step=send', 'step=subscribe', 'step=advance', 'step=production']),
    ...withSearches('/customers', ['', 'view=archived', 'sheet=new']),
    ...withSearches(`/customers/${customer_id}`, [
      '',
      'sheet=edit',
      'sheet=record',
      `why=${subscription_id}`,
      'do=archive',
    ]),
    ...withSearches('/usage', [
      '',
      `meter=${meter_id}&split=customer&compare=before`,
      `meter=${meter_id}&show=cost&why=cost`,
    ]),
    ...withSearches('/events', [
      '',
      'tab=uncounted',
      'tab=corrected',
      'tab=late',
      'do=send',
      `event=${event_id}`,
      `event=${event_id}&do=void`,
      `event=${uncounted_id}`,
      `event=${uncounted_id}&do=mend`,
    ]),
    ...withSearches('/meters', ['', 'view=archived']),
    '/meters/new',
    ...withSearches(`/meters/${meter_id}`, ['', 'sheet=filters', 'sheet=record']),
    ...withSearches('/plans', ['', 'sheet=new']),
    ...withSearches(plan, [
      '',
      ...['edit', 'copy', 'roll-out', 'entitlement', 'grant', 'record'].map((sheet) => `sheet=${sheet}`),
    ]),
    `${plan}/prices/new`,
    ...withSearches(price, ['', 'why=cost', 'sheet=record']),
    '/subscriptions',
    ...withSearches('/subscriptions/new', [
      '',
      'sheet=customer',
      'sheet=request',
      `customer=${customer_id}&plan=${plan_id}`,
      `customer=${customer_id}&plan=${plan_id}&terms=${TERMS}`,
    ]),
    ...withSearches(`/subscriptions/${subscription_id}`, [
      '',
      'why=total',
      ...['plan', 'quantity', 'cancel', 'addon', 'record'].map((sheet) => `sheet=${sheet}`),
    ]),
    ...withSearches('/invoices', ['', 'show=draft', 'show=void']),
    ...withSearches(invoice, ['', `why=${line_id}`, 'why=total', 'do=pay', 'do=void', 'do=send']),
    ...withSearches(`/invoices/${draft_id}`, ['', 'do=finalize']),
    ...withSearches('/wallets', ['', 'sheet=new']),
    ...withSearches(`/wallets/${wallet_id}`, ['', 'why=balance', 'sheet=record', 'do=top-up', 'do=debit', 'do=close']),
    ...withSearches('/api-keys', ['', 'sheet=new']),
    ...withSearches('/webhooks', ['', 'sheet=new']),
    ...withSearches(`/webhooks/${endpoint_id}`, ['', 'sheet=edit', 'sheet=rotate', 'sheet=record']),
    ...withSearches('/settings', [
      ...['company', 'numbering', 'tax', 'mail', 'account', 'team', 'environments', 'audit'].map((tab) => `tab=${tab}`),
      ...['team', 'environments'].map((tab) => `tab=${tab}&sheet=new`),
    ]),
  ];
}

/** The open parts of the form of a new subscription. */
const TERMS = encodeURIComponent(
  '["discount","commitment","addons","entitlements","phases","billing","taxes","payer"]',
);

function withSearches(path: string, searches: readonly string[]): string[] {
  return searches.map((search) => (search === '' ? path : `${path}?${search}`));
}
