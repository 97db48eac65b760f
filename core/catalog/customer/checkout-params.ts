/** Checkout of a request: its customer pays on a page of a payment provider before the request takes effect (docs/rules/checkout.md). */
import { z } from 'zod';
import { notAllowed } from '../../foundation/error.ts';
import { anyCase, decimalText, keyText, metadata, orNull, webAddress } from '../../foundation/record.ts';

export const checkoutProviderConfigShape = z.object({
  collection_method: orNull(anyCase(['charge_automatically', 'send_invoice'])).meta({
    description: 'Collection of later invoices, if the request itself has no `collection_method`. Default: null.',
  }),
  payment_method: orNull(anyCase(['CARD', 'ACH', 'OFFLINE', 'CREDITS', 'PAYMENT_LINK', 'UPI'])).meta({
    description: 'Not supported yet: any value except null is refused. The account at the provider decides.',
  }),
  max_mandate_limit: orNull(decimalText).meta({
    description: 'Not supported yet: any value except null is refused.',
  }),
});

const url = orNull(webAddress);

export const checkoutParamsShape = z.object({
  payment_provider: keyText
    .min(1)
    .overwrite((name) => name.toLowerCase())
    .meta({
      description: 'Payment provider that shows the page, case-insensitive. A provider without such a page is refused.',
    }),
  payment_provider_config: orNull(checkoutProviderConfigShape).meta({
    description: 'Terms of the payment. Default: null.',
  }),
  success_url: url.meta({ description: 'URL to which the page leads after the payment. Default: none.' }),
  failure_url: url.meta({
    description: 'URL to which the page leads without a payment, if there is no `cancel_url`. Default: none.',
  }),
  cancel_url: url.meta({ description: 'URL to which the page leads if the customer leaves it. Default: none.' }),
  idempotency_key: orNull(keyText).meta({
    description:
      'Idempotency key: one key creates one session, with one subscription or purchase. A repeated key with other content is refused with 409.',
  }),
  metadata,
});
export type CheckoutParams = z.output<typeof checkoutParamsShape>;

/** Refuses terms of the payment that no payment provider of this service supports yet. */
export function checkCheckoutParams({ payment_provider_config: config }: CheckoutParams, prefix = ''): void {
  for (const field of ['payment_method', 'max_mandate_limit'] as const)
    if (config && config[field] !== null)
      throw notAllowed(`payment_provider_config.${field} is not supported yet`, {
        field: `${prefix}payment_provider_config.${field}`,
      });
}
