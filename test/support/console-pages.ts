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
    '/first-bill',
    '/customers',
    `/customers/${customer_id}`,
    '/usage',
    '/events',
    `/events?event=${event_id}`,
    `/events?event=${uncounted_id}`,
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
    '/subscriptions/new',
    `/subscriptions/${subscription_id}`,
    ...withSearches('/invoices', ['', 'show=draft', 'show=void']),
    ...withSearches(invoice, ['', `why=${line_id}`, 'why=total', 'do=pay', 'do=void', 'do=send']),
    ...withSearches(`/invoices/${draft_id}`, ['', 'do=finalize']),
    '/wallets',
    `/wallets/${wallet_id}`,
    ...withSearches('/api-keys', ['', 'sheet=new']),
    '/webhooks',
    `/webhooks/${endpoint_id}`,
    '/settings',
  ];
}

function withSearches(path: string, searches: readonly string[]): string[] {
  return searches.map((search) => (search === '' ? path : `${path}?${search}`));
}
