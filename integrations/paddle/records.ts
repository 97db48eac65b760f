/** Fields of Paddle's records that this service reads. Amounts are texts (amounts.ts). */
import { ProviderError } from '../provider-error.ts';

type CustomData = Readonly<Record<string, unknown>> | null;

export type PaddleCustomer = { readonly id: string; readonly status: string; readonly custom_data: CustomData };
export type PaddleAddress = { readonly id: string; readonly custom_data: CustomData };

type LineTotals = {
  readonly subtotal: string;
  readonly discount: string;
  readonly tax: string;
  readonly total: string;
};

type PaddleLine = { readonly id: string; readonly price_id: string; readonly totals: LineTotals };

export type PaddleTransaction = {
  readonly id: string;
  readonly status: string;
  readonly customer_id: string | null;
  readonly custom_data: CustomData;
  readonly currency_code: string;
  readonly collection_mode: string;
  readonly created_at: string;
  readonly items: readonly { readonly price: { readonly id: string; readonly custom_data: CustomData } }[];
  readonly details: { readonly totals: LineTotals; readonly line_items: readonly PaddleLine[] };
  readonly payments: readonly { readonly status: string; readonly captured_at: string | null }[];
  readonly checkout: { readonly url: string | null } | null;
};

/** A refund, a credit or a chargeback of a transaction. Its amounts are split into net (`subtotal`) and tax. */
export type PaddleAdjustment = {
  readonly id: string;
  readonly action: string;
  readonly status: string;
  readonly reason: string;
  readonly transaction_id: string;
  readonly items: readonly { readonly item_id: string; readonly totals: { readonly subtotal: string } }[];
  readonly totals: { readonly subtotal: string; readonly tax: string };
};

type PaddleIdPrefix = 'ctm' | 'add' | 'txn' | 'adj';

/** Whether the text is an id of Paddle, so that no other text becomes part of a path. */
export function isPaddleId(id: unknown, prefix: PaddleIdPrefix): id is string {
  return typeof id === 'string' && new RegExp(`^${prefix}_[a-z\\d]{26}$`).test(id);
}

export function checkCustomerId(id: unknown): void {
  if (!isPaddleId(id, 'ctm'))
    throw new ProviderError('person', `${JSON.stringify(id)} is no customer of Paddle: it must begin with ctm_`);
}
