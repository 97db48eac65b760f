/** The price models there are (docs/rules/pricing.md). A new one is a file beside this and a line here. */
import { flatFee } from './flat-fee.ts';
import { packagePrice } from './package.ts';
import type { PriceModel } from './terms.ts';
import { tieredSlab } from './tiered-slab.ts';
import { tieredVolume } from './tiered-volume.ts';

export const PRICE_MODELS = [flatFee, packagePrice, tieredVolume, tieredSlab] as const satisfies readonly PriceModel[];

type Listed = (typeof PRICE_MODELS)[number];
export type BillingModel = Listed['billing_model'];
export type TierMode = NonNullable<Listed['tier_mode']>;
