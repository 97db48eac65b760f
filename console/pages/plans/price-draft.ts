/**
 * The draft of a price in the editor, and the requests that it becomes. Amounts and quantities are decimal strings, as they are sent; the
 * service checks them and names the field of a fault.
 */
export const MODELS = ['flat', 'per_unit', 'package', 'graduated', 'volume'] as const;
export type PriceModelChoice = (typeof MODELS)[number];

export const PERIODS = ['MONTHLY', 'QUARTERLY', 'HALF_YEARLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'ONETIME'] as const;
export type PricePeriod = (typeof PERIODS)[number];

export type TierDraft = { readonly up_to: string; readonly unit_amount: string; readonly flat_amount: string };

export type PriceDraft = {
  readonly type: 'USAGE' | 'FIXED';
  readonly model: PriceModelChoice;
  readonly meter_id: string | null;
  readonly display_name: string;
  readonly currency: string;
  readonly amount: string;
  readonly tiers: readonly TierDraft[];
  readonly divide_by: string;
  readonly round: 'up' | 'down';
  readonly billing_period: PricePeriod;
  readonly billing_period_count: string;
  readonly invoice_cadence: 'ARREAR' | 'ADVANCE';
  readonly min_quantity: string;
  readonly trial_period_days: string;
  readonly lookup_key: string;
  /** Instant from which the price, or its new version, is in effect; empty for the moment of publishing. */
  readonly starts_at: string;
};

/** The fields of a stored price that the editor reads. */
export type EditedPrice = {
  readonly type: 'USAGE' | 'FIXED';
  readonly billing_model: string;
  readonly tier_mode: string | null;
  readonly meter_id: string | null;
  readonly display_name: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly tiers: readonly { up_to: number | null; unit_amount: string; flat_amount: string | null }[] | null;
  readonly transform_quantity: { divide_by: number; round: 'up' | 'down' } | null;
  readonly billing_period: PricePeriod;
  readonly billing_period_count: number;
  readonly invoice_cadence: 'ARREAR' | 'ADVANCE';
  readonly min_quantity: string | null;
  readonly trial_period_days: number;
  readonly lookup_key: string | null;
};

export const OPEN_TIER: TierDraft = { up_to: '', unit_amount: '', flat_amount: '' };

export function createDraft(currency: string): PriceDraft {
  return {
    type: 'USAGE',
    model: 'graduated',
    meter_id: null,
    display_name: '',
    currency,
    amount: '',
    tiers: [OPEN_TIER, OPEN_TIER],
    divide_by: '',
    round: 'up',
    billing_period: 'MONTHLY',
    billing_period_count: '1',
    invoice_cadence: 'ARREAR',
    min_quantity: '',
    trial_period_days: '',
    lookup_key: '',
    starts_at: '',
  };
}

export function toDraft(price: EditedPrice): PriceDraft {
  return {
    ...createDraft(price.currency),
    type: price.type,
    model: deriveModel(price),
    meter_id: price.meter_id,
    display_name: price.display_name ?? '',
    amount: price.billing_model === 'TIERED' ? '' : price.amount,
    tiers: price.tiers?.map((tier) => ({
      up_to: tier.up_to === null ? '' : String(tier.up_to),
      unit_amount: tier.unit_amount,
      flat_amount: tier.flat_amount ?? '',
    })) ?? [OPEN_TIER, OPEN_TIER],
    divide_by: price.transform_quantity ? String(price.transform_quantity.divide_by) : '',
    round: price.transform_quantity?.round ?? 'up',
    billing_period: price.billing_period,
    billing_period_count: String(price.billing_period_count),
    invoice_cadence: price.invoice_cadence,
    min_quantity: price.min_quantity ?? '',
    trial_period_days: price.trial_period_days === 0 ? '' : String(price.trial_period_days),
    lookup_key: price.lookup_key ?? '',
  };
}

/** A fixed fee without a quantity is flat; the model of the API is that of a price per unit. */
export function deriveModel(
  price: Pick<EditedPrice, 'type' | 'billing_model' | 'tier_mode' | 'min_quantity'>,
): PriceModelChoice {
  if (price.billing_model === 'PACKAGE') return 'package';
  if (price.billing_model === 'TIERED') return price.tier_mode === 'VOLUME' ? 'volume' : 'graduated';
  return price.type === 'FIXED' && price.min_quantity === null ? 'flat' : 'per_unit';
}

/** The draft after the choice of a model: a flat fee is fixed and paid in advance. */
export function chooseModel(draft: PriceDraft, model: PriceModelChoice): PriceDraft {
  if (model !== 'flat')
    return { ...draft, model, min_quantity: draft.type === 'FIXED' ? draft.min_quantity || '1' : '' };
  return { ...chooseType(draft, 'FIXED'), model, min_quantity: '' };
}

export function chooseType(draft: PriceDraft, type: PriceDraft['type']): PriceDraft {
  if (type === draft.type) return draft;
  if (type === 'USAGE')
    return {
      ...draft,
      type,
      model: draft.model === 'flat' ? 'per_unit' : draft.model,
      invoice_cadence: 'ARREAR',
      min_quantity: '',
      trial_period_days: '',
      billing_period: draft.billing_period === 'ONETIME' ? 'MONTHLY' : draft.billing_period,
    };
  return {
    ...draft,
    type,
    meter_id: null,
    invoice_cadence: 'ADVANCE',
    min_quantity: draft.model === 'flat' ? '' : draft.min_quantity || '1',
  };
}

export function isTiered(model: PriceModelChoice): boolean {
  return model === 'graduated' || model === 'volume';
}

/** Whether every field of the charge is filled, so that the service can price a quantity. */
export function hasCharge(draft: PriceDraft): boolean {
  if (!isTiered(draft.model)) return draft.amount !== '' && (draft.model !== 'package' || draft.divide_by !== '');
  return draft.tiers.every(
    ({ up_to, unit_amount }, at) => unit_amount !== '' && (up_to !== '' || at === draft.tiers.length - 1),
  );
}

/** The fields that a change of the charge sends, and a new price, too. Whole numbers are texts, which the service reads. */
export function buildCharge(draft: PriceDraft) {
  const { model } = draft;
  const isInTiers = isTiered(model);
  return {
    billing_model: isInTiers ? 'TIERED' : model === 'package' ? 'PACKAGE' : 'FLAT_FEE',
    tier_mode: model === 'graduated' ? 'SLAB' : model === 'volume' ? 'VOLUME' : null,
    amount: isInTiers ? null : toValue(draft.amount),
    tiers: isInTiers ? draft.tiers.map(buildTier) : null,
    transform_quantity: model === 'package' ? { divide_by: draft.divide_by, round: draft.round } : null,
  };
}

function buildTier({ up_to, unit_amount, flat_amount }: TierDraft) {
  return { up_to: toValue(up_to), unit_amount, flat_amount: toValue(flat_amount) };
}

/** The terms that a cost depends on, beside the charge. */
export function buildCostedPrice(draft: PriceDraft) {
  return {
    ...buildCharge(draft),
    type: draft.type,
    currency: draft.currency,
    // A cost does not depend on the meter, and a draft may not have one yet.
    meter_id: draft.type === 'USAGE' ? (draft.meter_id ?? 'meter_draft') : null,
    min_quantity: draft.type === 'FIXED' ? toValue(draft.min_quantity) : null,
  };
}

export function buildPriceRequest(draft: PriceDraft, plan_id: string) {
  const isFixed = draft.type === 'FIXED';
  return {
    ...buildCharge(draft),
    entity_type: 'PLAN',
    entity_id: plan_id,
    type: draft.type,
    currency: draft.currency,
    meter_id: isFixed ? null : draft.meter_id,
    display_name: toValue(draft.display_name),
    billing_period: draft.billing_period,
    billing_period_count: draft.billing_period === 'ONETIME' ? '1' : draft.billing_period_count,
    invoice_cadence: draft.billing_period === 'ONETIME' ? 'ADVANCE' : draft.invoice_cadence,
    min_quantity: isFixed ? toValue(draft.min_quantity) : null,
    trial_period_days: isFixed ? toValue(draft.trial_period_days) : null,
    lookup_key: toValue(draft.lookup_key),
    start_date: toValue(draft.starts_at),
  };
}

/** The body of a change: the charge alone if it differs, so that a new name makes no new version. */
export function buildPriceChange(draft: PriceDraft, stored: EditedPrice) {
  const before = toDraft(stored);
  return {
    ...(isChargeChanged(draft, stored)
      ? { ...buildCharge(draft), ...(draft.starts_at === '' ? {} : { effective_from: draft.starts_at }) }
      : {}),
    ...(draft.display_name === before.display_name ? {} : { display_name: toValue(draft.display_name) }),
    ...(draft.lookup_key === before.lookup_key ? {} : { lookup_key: toValue(draft.lookup_key) }),
  };
}

export function isChargeChanged(draft: PriceDraft, stored: EditedPrice): boolean {
  return JSON.stringify(buildCharge(draft)) !== JSON.stringify(buildCharge(toDraft(stored)));
}

function toValue(text: string): string | null {
  return text === '' ? null : text;
}
