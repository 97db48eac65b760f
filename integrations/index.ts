/** All providers. A new one is a folder here, whose provider.ts declares its capabilities, and an entry. */
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

/** The order decides which of several providers delivers webhooks or mail: the first that the settings select. */
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
};
