/**
 * List of all providers. A new provider is a folder here, whose provider.ts declares its capabilities, and an entry
 * below.
 */
import { directory } from './directory/provider.ts';
import { http } from './http/provider.ts';
import type { Provider } from './provider.ts';
import { quickbooks } from './quickbooks/provider.ts';
import { razorpay } from './razorpay/provider.ts';
import { s3 } from './s3/provider.ts';
import { sandbox } from './sandbox/provider.ts';
import { smtp } from './smtp/provider.ts';
import { stripe } from './stripe/provider.ts';
import { svix } from './svix/provider.ts';
import { whop } from './whop/provider.ts';

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
  whop,
};
