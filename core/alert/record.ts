/**
 * An alert that is set on what a subscription, one of its lines or a group of its lines costs, and the log of every change of state of
 * any alert (docs/rules/alerts.md). Alerts on balances are set on wallets and features themselves.
 */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { type AlertSettings, alertSettings, checkAlertSettings } from '../feature/record.ts';
import { anyCase, baseFields, decimalText, orNull, timestampText } from '../record.ts';
import { ALERT_STATES, applyDirection } from './state.ts';

export const ALERT_ENTITY_TYPES = [
  'wallet',
  'feature',
  'subscription',
  'subscription_line_item',
  'group',
  'entitlement_grant',
] as const;
export const ALERT_TYPES = [
  'low_ongoing_balance',
  'low_credit_balance',
  'feature_wallet_balance',
  'subscription_spend',
  'subscription_line_item_spend',
  'subscription_group_spend',
  'entitlement_grant_threshold',
  'entitlement_grant_exhausted',
] as const;
export type AlertEntityType = (typeof ALERT_ENTITY_TYPES)[number];
export type AlertType = (typeof ALERT_TYPES)[number];

/** What spending is watched of, and what it is told as. */
export const SPEND = {
  subscription: 'subscription_spend',
  subscription_line_item: 'subscription_line_item_spend',
  group: 'subscription_group_spend',
} as const satisfies Partial<Record<AlertEntityType, AlertType>>;
export type SpendEntity = keyof typeof SPEND;

export const newAlertSetting = z.object({
  entity_type: anyCase(ALERT_ENTITY_TYPES).meta({
    description:
      'subscription, subscription_line_item or group: wallets, features and entitlements have settings of their own.',
  }),
  entity_id: z.string().min(1).meta({ description: 'Its id.' }),
  parent_entity_type: orNull(anyCase(ALERT_ENTITY_TYPES)).meta({
    description: 'subscription, of a line item or a group; nothing of a subscription.',
  }),
  parent_entity_id: orNull(z.string()).meta({ description: 'The id of that subscription.' }),
  config: alertSettings.meta({ description: 'The levels; all of them above.' }),
});
export type NewAlertSetting = z.output<typeof newAlertSetting>;

export const alertSettingShape = z.object({
  id: z.string(),
  entity_type: z.enum(ALERT_ENTITY_TYPES).meta({ description: 'What it is set on.' }),
  entity_id: z.string().meta({ description: 'Its id.' }),
  parent_entity_type: z.string().nullish().meta({ description: 'subscription; null of a subscription.' }),
  parent_entity_id: z.string().nullish().meta({ description: 'The subscription of the line item or the group.' }),
  enabled: z.boolean().meta({ description: 'Whether it is looked at.' }),
  config: alertSettings.nullable().meta({ description: 'The levels.' }),
  ...baseFields,
});
export type AlertSetting = z.output<typeof alertSettingShape>;

export const alertLogShape = z.object({
  id: z.string(),
  entity_type: z.enum(ALERT_ENTITY_TYPES).meta({ description: 'What has changed its state.' }),
  entity_id: z.string().meta({ description: 'Its id.' }),
  parent_entity_type: z
    .string()
    .nullish()
    .meta({ description: 'wallet of a feature, subscription of a line item or a group.' }),
  parent_entity_id: z.string().nullish().meta({ description: 'The id of that.' }),
  customer_id: z.string().nullish().meta({ description: 'Whose it is.' }),
  alert_type: z.enum(ALERT_TYPES).meta({ description: 'What was compared.' }),
  alert_status: z.enum(ALERT_STATES).meta({ description: 'The state that it has got.' }),
  alert_info: z
    .object({
      alert_settings: alertSettings.nullish().meta({ description: 'The levels as they were.' }),
      value_at_time: decimalText.meta({ description: 'What was compared with them.' }),
      timestamp: timestampText.meta({ description: 'When.' }),
    })
    .meta({ description: 'Why.' }),
  ...baseFields,
});
export type AlertLog = z.output<typeof alertLogShape>;

/** Of spending, when its fields go together. */
export function defineSpendAlert(input: NewAlertSetting): NewAlertSetting & { entity_type: SpendEntity } {
  const { entity_type, parent_entity_type, parent_entity_id } = input;
  if (!isSpend(entity_type)) throw invalid('entity_type', `must be one of ${Object.keys(SPEND).join(', ')}`);
  if (entity_type === 'subscription') {
    for (const field of ['parent_entity_type', 'parent_entity_id'] as const)
      if (input[field] !== null) throw invalid(field, 'is not allowed for a subscription');
  } else {
    if (parent_entity_type !== 'subscription') throw invalid('parent_entity_type', 'must be subscription');
    if (parent_entity_id === null) throw invalid('parent_entity_id', `is required for a ${entity_type}`);
  }
  return { ...input, entity_type, config: defineSpendLevels(input.config) };
}

function isSpend(entity_type: AlertEntityType): entity_type is SpendEntity {
  return Object.hasOwn(SPEND, entity_type);
}

export function defineSpendLevels(config: AlertSettings): AlertSettings {
  return requireLevelsAbove(config, 'config');
}

/** Of what grows, as spending does: it is looked at from below. */
export function requireLevelsAbove(settings: AlertSettings, field: string): AlertSettings {
  for (const name of ['critical', 'warning', 'info'] as const)
    if (settings[name]?.condition === 'below') throw invalid(`${field}.${name}.condition`, 'must be above');
  const above = applyDirection(settings, 'above');
  checkAlertSettings(above, field);
  return above;
}

/** The subscription whose spending is watched. */
export function findWatchedSubscription({
  entity_type,
  entity_id,
  parent_entity_id,
}: Pick<AlertSetting, 'entity_type' | 'entity_id' | 'parent_entity_id'>) {
  return entity_type === 'subscription' ? entity_id : parent_entity_id!;
}

/** What of spending it is that has a state. */
export function toSpendAlertKey({
  entity_type,
  entity_id,
  parent_entity_id = null,
}: Pick<AlertSetting, 'entity_type' | 'entity_id' | 'parent_entity_id'>) {
  return { alert_type: SPEND[entity_type as SpendEntity], entity_id, parent_entity_id };
}
