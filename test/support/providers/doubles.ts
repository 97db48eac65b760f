/**
 * The providers with an account. A new one adds its fake here.
 * test/actions/delivery/integrations/every-provider.test.ts fails without it, and runs all its rows with it.
 */

import { ChargebeeDouble } from './chargebee-double.ts';
import { HubSpotDouble } from './hubspot-double.ts';
import { MoyasarDouble } from './moyasar-double.ts';
import { NomodDouble } from './nomod-double.ts';
import { PaddleDouble } from './paddle-double.ts';
import type { ProviderDouble } from './provider-double.ts';
import { QuickBooksDouble } from './quickbooks-double.ts';
import { RazorpayDouble } from './razorpay-double.ts';
import { StripeDouble } from './stripe-double.ts';
import { WhopDouble } from './whop-double.ts';
import { XeroDouble } from './xero-double.ts';
import { ZohoBooksDouble } from './zoho-books-double.ts';

export const PROVIDER_DOUBLES: Readonly<Record<string, () => ProviderDouble>> = {
  stripe: () => new StripeDouble(),
  razorpay: () => new RazorpayDouble(),
  quickbooks: () => new QuickBooksDouble(),
  zoho_books: () => new ZohoBooksDouble(),
  xero: () => new XeroDouble(),
  paddle: () => new PaddleDouble(),
  moyasar: () => new MoyasarDouble(),
  nomod: () => new NomodDouble(),
  hubspot: () => new HubSpotDouble(),
  chargebee: () => new ChargebeeDouble(),
  whop: () => new WhopDouble(),
};
