/** Mappings for files of common producers (docs/rules/imports.md, "Presets"). All make events. */
import {
  DEFAULT_TERMS,
  type ImportMappingTerms,
  type ImportPreset,
  type MappedField,
  type PresetName,
} from './record.ts';

type Source = Omit<Partial<MappedField>, 'field'>;

const definePreset = (
  name: PresetName,
  description: string,
  { fields, ...terms }: Partial<Omit<ImportMappingTerms, 'fields'>> & { fields: Readonly<Record<string, Source>> },
): ImportPreset => ({
  name,
  description,
  entity_type: 'EVENTS',
  ...DEFAULT_TERMS,
  other_columns: 'PROPERTIES',
  ...terms,
  fields: Object.entries(fields).map(([field, source]) => ({
    field,
    columns: [],
    combine: 'FIRST',
    value: null,
    type: null,
    is_optional: false,
    ...source,
  })),
});

const number = (...columns: string[]): Source => ({ columns, type: 'NUMBER' });

const PRESETS: Readonly<Record<PresetName, ImportPreset>> = {
  FOCUS: definePreset('FOCUS', 'Costs and usage in FOCUS 1.x, of any provider.', {
    fields: {
      event_name: { value: 'focus_charge' },
      external_customer_id: { columns: ['SubAccountId'] },
      timestamp: { columns: ['ChargePeriodStart'] },
      'properties.BilledCost': number('BilledCost'),
      'properties.EffectiveCost': { ...number('EffectiveCost'), is_optional: true },
      'properties.ConsumedQuantity': { ...number('ConsumedQuantity'), is_optional: true },
    },
  }),
  AWS_CUR: definePreset(
    'AWS_CUR',
    'AWS Cost and Usage Report (legacy), with headings such as lineItem/UnblendedCost.',
    {
      property_names: 'SNAKE_CASE',
      fields: {
        event_id: { columns: ['identity/LineItemId', 'identity/TimeInterval'], combine: 'JOIN' },
        event_name: { value: 'aws_line_item' },
        external_customer_id: { columns: ['lineItem/UsageAccountId'] },
        timestamp: { columns: ['lineItem/UsageStartDate'] },
        'properties.line_item_unblended_cost': number('lineItem/UnblendedCost'),
        'properties.line_item_usage_amount': number('lineItem/UsageAmount'),
      },
    },
  ),
  AWS_DATA_EXPORTS: definePreset('AWS_DATA_EXPORTS', 'AWS Data Exports, CUR 2.0.', {
    property_names: 'SNAKE_CASE',
    fields: {
      event_id: { columns: ['identity_line_item_id', 'identity_time_interval'], combine: 'JOIN' },
      event_name: { value: 'aws_line_item' },
      external_customer_id: { columns: ['line_item_usage_account_id'] },
      timestamp: { columns: ['line_item_usage_start_date'] },
      'properties.line_item_unblended_cost': number('line_item_unblended_cost'),
      'properties.line_item_usage_amount': number('line_item_usage_amount'),
    },
  }),
  AZURE_COST: definePreset('AZURE_COST', 'Azure Cost Management exports, actual or amortized.', {
    date_format: 'MONTH_FIRST',
    fields: {
      event_name: { value: 'azure_charge' },
      external_customer_id: { columns: ['SubscriptionId', 'SubscriptionGuid'] },
      timestamp: { columns: ['Date', 'UsageDate', 'UsageDateTime'] },
      'properties.CostInBillingCurrency': number('CostInBillingCurrency', 'Cost', 'PreTaxCost'),
      'properties.Quantity': number('Quantity', 'UsageQuantity'),
    },
  }),
  LITELLM: definePreset('LITELLM', 'Spend logs of the LiteLLM proxy.', {
    fields: {
      event_id: { columns: ['request_id'] },
      event_name: { value: 'llm_request' },
      external_customer_id: { columns: ['end_user'] },
      timestamp: { columns: ['startTime'] },
      'properties.spend': number('spend'),
      'properties.total_tokens': { ...number('total_tokens'), is_optional: true },
      'properties.prompt_tokens': { ...number('prompt_tokens'), is_optional: true },
      'properties.completion_tokens': { ...number('completion_tokens'), is_optional: true },
    },
  }),
};

export const listPresets = (): ImportPreset[] => Object.values(PRESETS);

/** Finds a preset by its name in any case. */
export function findPreset(name: string): ImportPreset | undefined {
  return listPresets().find((preset) => preset.name === name.toUpperCase());
}
