/** The price models there are (docs/rules/pricing.md). A new one is a file beside this and a line here. */
import { flatFee } from './flat-fee.ts';
import { packagePrice } from './package.ts';
import type { PricingModel } from './terms.ts';
import { tieredSlab } from './tiered-slab.ts';
import { tieredVolume } from './tiered-volume.ts';

export const PRICE_MODELS = [
  flatFee,
  packagePrice,
  tieredVolume,
  tieredSlab,
] as const satisfies readonly PricingModel[];

type ListedPricingModel = (typeof PRICE_MODELS)[number];
export type BillingModel = ListedPricingModel['billing_model'];
export type TierMode = NonNullable<ListedPricingModel['tier_mode']>;
