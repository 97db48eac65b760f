/** All price models (docs/rules/pricing.md). A new model is a file in this folder and an entry here. */
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
