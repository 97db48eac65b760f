/**
 * The providers with an account. A new one adds its fake here.
 * test/actions/delivery/integrations/every-provider.test.ts fails without it, and runs all its rows with it.
 */
import { ChargebeeDouble } from './chargebee-double.ts';
import type { ProviderDouble } from './provider-double.ts';
import { QuickBooksDouble } from './quickbooks-double.ts';
import { RazorpayDouble } from './razorpay-double.ts';
import { StripeDouble } from './stripe-double.ts';

export const PROVIDER_DOUBLES: Readonly<Record<string, () => ProviderDouble>> = {
  stripe: () => new StripeDouble(),
  razorpay: () => new RazorpayDouble(),
  quickbooks: () => new QuickBooksDouble(),
  chargebee: () => new ChargebeeDouble(),
};
