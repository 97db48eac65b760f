/** Catalogues to begin with. A template has the shape of an answer of `POST /ai/pricing/parse`, so that both are created in one way. */
export type CatalogueRecord = { readonly ref: string; readonly body: Readonly<Record<string, unknown>> };

/** Bodies of records; `entity_id`, `meter_id` and `feature_id` may be the `ref` of another record. */
export type CatalogueDraft = {
  readonly plans: readonly CatalogueRecord[];
  readonly meters: readonly CatalogueRecord[];
  readonly features: readonly CatalogueRecord[];
  readonly prices: readonly CatalogueRecord[];
  readonly entitlements: readonly CatalogueRecord[];
};

export const TEMPLATE_KEYS = ['tokens', 'calls', 'seats'] as const;
export type TemplateKey = (typeof TEMPLATE_KEYS)[number];

const PLAN = 'plan';
const RECURRING = { entity_type: 'PLAN', entity_id: PLAN, currency: 'usd', billing_period: 'MONTHLY' };

function buildFee(display_name: string, amount: string): Record<string, unknown> {
  const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', invoice_cadence: 'ADVANCE' };
  return { ...RECURRING, ...terms, display_name, amount };
}

type MeteredCharge = {
  readonly name: string;
  readonly event_name: string;
  readonly aggregation: Readonly<Record<string, string>>;
  readonly filters?: readonly { readonly key: string; readonly values: readonly string[] }[];
  readonly price: Readonly<Record<string, unknown>>;
};

/** Each charge has a meter, a feature that shows it, and a price. */
function buildCatalogue(
  plan: { name: string; description: string },
  fees: readonly Record<string, unknown>[],
  charges: readonly MeteredCharge[],
): CatalogueDraft {
  const usage = { ...RECURRING, type: 'USAGE', invoice_cadence: 'ARREAR' };
  const refs = charges.map((charge, index) => ({ ...charge, ref: `meter_${index + 1}` }));
  return {
    plans: [{ ref: PLAN, body: plan }],
    meters: refs.map(({ ref, name, event_name, aggregation, filters = [] }) => ({
      ref,
      body: { name, event_name, aggregation, filters, reset_usage: 'BILLING_PERIOD' },
    })),
    features: refs.map(({ ref, name }) => ({
      ref: `feature_${ref}`,
      body: { name, type: 'metered', meter_id: ref },
    })),
    prices: [
      ...fees,
      ...refs.map(({ ref, name, price }) => ({ ...usage, display_name: name, meter_id: ref, ...price })),
    ].map((body, index) => ({ ref: `price_${index + 1}`, body })),
    entitlements: [],
  };
}

const perUnit = (amount: string) => ({ billing_model: 'FLAT_FEE', amount });
const countTokens = (name: string, field: string, model: string, amount: string): MeteredCharge => ({
  name: `${name}, ${model}`,
  event_name: 'completion',
  aggregation: { type: 'SUM', field },
  filters: [{ key: 'model', values: [model] }],
  price: perUnit(amount),
});

export const TEMPLATES: { readonly [Key in TemplateKey]: CatalogueDraft } = {
  tokens: buildCatalogue(
    { name: 'Scale', description: 'Tokens by model' },
    [buildFee('Platform fee', '500')],
    [
      countTokens('Input tokens', 'tokens_in', 'wren-2', '0.000003'),
      countTokens('Output tokens', 'tokens_out', 'wren-2', '0.000015'),
      countTokens('Input tokens', 'tokens_in', 'wren-2-mini', '0.0000004'),
      countTokens('Output tokens', 'tokens_out', 'wren-2-mini', '0.000002'),
    ],
  ),
  calls: buildCatalogue(
    { name: 'Pro', description: 'API calls, cheaper by tier' },
    [buildFee('Base fee', '20')],
    [
      {
        name: 'API calls',
        event_name: 'api_call',
        aggregation: { type: 'COUNT' },
        price: {
          billing_model: 'TIERED',
          tier_mode: 'SLAB',
          tiers: [
            { up_to: 10_000, unit_amount: '0.01' },
            { up_to: 1_000_000, unit_amount: '0.005' },
            { up_to: null, unit_amount: '0.002' },
          ],
        },
      },
    ],
  ),
  seats: buildCatalogue(
    { name: 'Team', description: 'Seats and usage' },
    [buildFee('Seat', '12')],
    [
      {
        name: 'Reports',
        event_name: 'report_created',
        aggregation: { type: 'COUNT' },
        price: perUnit('0.10'),
      },
      {
        name: 'Storage, GB',
        event_name: 'storage_level',
        aggregation: { type: 'MAX', field: 'gb' },
        price: perUnit('0.25'),
      },
    ],
  ),
};
