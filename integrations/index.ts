/**
 * List of all providers. A new provider is a folder here, whose provider.ts declares its capabilities, and an entry
 * below.
 */
import { chargebee } from './chargebee/provider.ts';
import { directory } from './directory/provider.ts';
import { http } from './http/provider.ts';
import { hubspot } from './hubspot/provider.ts';
import { moyasar } from './moyasar/provider.ts';
import { nomod } from './nomod/provider.ts';
import { paddle } from './paddle/provider.ts';
import type { Provider } from './provider.ts';
import { quickbooks } from './quickbooks/provider.ts';
import { razorpay } from './razorpay/provider.ts';
import { s3 } from './s3/provider.ts';
import { sandbox } from './sandbox/provider.ts';
import { smtp } from './smtp/provider.ts';
import { stripe } from './stripe/provider.ts';
import { svix } from './svix/provider.ts';
import { whop } from './whop/provider.ts';
import { xero } from './xero/provider.ts';
import { zoho_books } from './zoho_books/provider.ts';

/** If the settings select several providers of webhooks or mail, the first in this order is used. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  sandbox,
  s3,
  directory,
  svix,
  http,
  smtp,
  stripe,
  razorpay,
  quickbooks,
  zoho_books,
  xero,
  paddle,
  moyasar,
  nomod,
  hubspot,
  chargebee,
  whop,
};
