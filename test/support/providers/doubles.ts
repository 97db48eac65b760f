/**
 * The providers with an account. A new one adds its fake here.
 * test/actions/delivery/integrations/every-provider.test.ts fails without it, and runs all its rows with it.
 */
import type { ProviderDouble } from './provider-double.ts';
import { QuickBooksDouble } from './quickbooks-double.ts';
import { RazorpayDouble } from './razorpay-double.ts';
import { StripeDouble } from './stripe-double.ts';
import { WhopDouble } from './whop-double.ts';

export const PROVIDER_DOUBLES: Readonly<Record<string, () => ProviderDouble>> = {
  stripe: () => new StripeDouble(),
  razorpay: () => new RazorpayDouble(),
  quickbooks: () => new QuickBooksDouble(),
  whop: () => new WhopDouble(),
};
